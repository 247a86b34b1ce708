// Package programs builds mailboxd for tests that start it, and starts programs as another user.
package programs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Build builds mailboxd, whose package is at a path, for tests that are called name. It unsets the variables of the
// person who runs them. The sockets of daemons are beside the program, until remove is called.
func Build(name, mailboxd string) (program string, remove func(), err error) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "MAILBOXD_") || name == "AINL_AGENT_ROOT" {
			if err := os.Unsetenv(name); err != nil {
				return "", nil, err
			}
		}
	}
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	program = filepath.Join(dir, "mailboxd")
	build := exec.Command("go", "build", "-o", program, mailboxd)
	build.Stderr = os.Stderr
	if err = os.Setenv("XDG_RUNTIME_DIR", dir); err == nil {
		err = build.Run()
	}
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("build mailboxd: %w", err)
	}
	return program, remove, nil
}

// AsAnotherUser returns the program of the tests with arguments, to be run as another user. Its directory, in
// which that user can read files, is removed after the test. Without root, the test is skipped.
func AsAnotherUser(t testing.TB, args ...string) (cmd *exec.Cmd, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("another user can be played by root alone")
	}
	dir, err := os.MkdirTemp("/tmp", "another-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "program"), text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	const another = 65534
	cmd = exec.Command(filepath.Join(dir, "program"), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: another, Gid: another}}
	return cmd, dir
}
