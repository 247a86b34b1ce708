package differential_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// root is the directory of this module.
const root = "../../.."

// builds returns the paths of both builds. It skips a test where the source has
// no history, as in an archive of it.
func builds(t *testing.T) (base, current string) {
	t.Helper()
	if err := exec.Command("git", "-C", root, "rev-parse", "--git-dir").Run(); err != nil {
		t.Skip("this source has no git history, so the base cannot be built: ", err)
	}
	base, err := buildBase()
	if err != nil {
		t.Fatal(err)
	}
	current, err = buildCurrent()
	if err != nil {
		t.Fatal(err)
	}
	return base, current
}

// buildBase builds the newest commit that changed base.txt, moves of the file left out. It is not named by
// its hash: that changes where history is written again, and a checkout of today would have no base.
var buildBase = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("git", "log", "-1", "--follow", "--diff-filter=AM", "--format=%H", "--", "base.txt").Output()
	commit := strings.TrimSpace(string(out))
	if err != nil || commit == "" {
		return "", fmt.Errorf("find the commit of base.txt in the history (git log -1 -- base.txt): it is %q: %w", commit, err)
	}
	source := filepath.Join(work, "base-source")
	if err := unpack(commit, source); err != nil {
		return "", fmt.Errorf("unpack commit %s: %w", commit, err)
	}
	return build(source, "base")
})

// buildCurrent builds the working tree.
var buildCurrent = sync.OnceValues(func() (string, error) { return build(root, "current") })

// unpack writes the files of a commit into a new directory.
func unpack(commit, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	archive, err := exec.Command("git", "-C", root, "archive", "--format=tar", commit).Output()
	if err != nil {
		return err
	}
	untar := exec.Command("tar", "-x", "-C", dir)
	untar.Stdin = bytes.NewReader(archive)
	out, err := untar.CombinedOutput()
	if err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	return nil
}

// build builds the program from a source directory. Both builds say the same version
// of themselves.
func build(source, name string, flags ...string) (string, error) {
	path, err := filepath.Abs(filepath.Join(work, name, "mailboxd"))
	if err != nil {
		return "", err
	}
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-o", path}, flags...)
	cmd := exec.Command("go", append(args, "./cmd/mailboxd")...)
	cmd.Dir = source
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}
