package torture_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/testtools/slowtest"
)

// exports are the points that only mailboxd export comes by, and no daemon.
var exports = []string{"export-written", "export-placed"}

// An export that is killed leaves no file of its name, or the whole one; the next one is as if there had been none.
func TestAnExportThatIsKilledLeavesNoHalfFile(t *testing.T) {
	slowtest.SkipShort(t, "it builds a daemon")
	dir := t.TempDir()
	own := (&site{dir: dir}).environment()
	config := "root: " + dir + "/box\nstate_dir: " + dir + "/state\nagents:\n  - {id: a, exec: {command: ['true']}}\n"
	must(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config), 0o600))
	mailboxd := func(fault string, args ...string) error {
		cmd := exec.Command(daemon, append(args, "--config", filepath.Join(dir, "config.yaml"))...)
		cmd.Dir, cmd.Env = dir, append(own, "MAILBOXD_FAULT="+fault)
		text, err := cmd.CombinedOutput()
		t.Logf("%v: %v\n%s", args, err, text)
		return err
	}
	must(t, os.MkdirAll(filepath.Join(dir, "box"), 0o700))
	must(t, mailboxd("", "serve", "--once"))
	must(t, mailboxd("", "send", "--id", "t1", "--agent", "a", "--type", "work"))
	must(t, mailboxd("", "serve", "--once"))
	for _, point := range exports {
		name := point + ".tar"
		if err := mailboxd(point+":1", "export", "t1", "-o", name); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("the export doesn't die at %s: %v", point, err)
		}
		_, err := os.Stat(filepath.Join(dir, name))
		if placed := err == nil; placed != (point == "export-placed") || err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after a death at %s, the state of the file is: %v", point, err)
		}
	}
	must(t, mailboxd("", "export", "t1", "-o", "whole.tar"))
	whole, err := os.ReadFile(filepath.Join(dir, "whole.tar"))
	must(t, err)
	placed, err := os.ReadFile(filepath.Join(dir, "export-placed.tar"))
	must(t, err)
	if !bytes.Equal(whole, placed) {
		t.Error("the file of the export that was killed after it got its name is another one")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
