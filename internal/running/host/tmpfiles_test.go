package host

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheNearestRuleSaysWhatIsCleaned(t *testing.T) {
	etc, usr := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(usr, "tmp.conf"):  "# comment\nq /tmp 1777 root root 10d\nq /var/tmp 1777 root root 30d\n",
		filepath.Join(usr, "more.conf"): "d /tmp/kept 0700 root root -\nx /tmp/left\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dirs := []string{etc, usr}
	for path, want := range map[string]string{"/tmp/box": "10d", "/var/tmp/box": "30d", "/tmp/kept/box": "", "/tmp/left/box": "", "/home/me": "", "/tmpfoo": ""} {
		if got := cleanedAfter(path, dirs); got != want {
			t.Errorf("%s is cleaned after %q; want %q", path, got, want)
		}
	}
	if err := os.WriteFile(filepath.Join(etc, "tmp.conf"), []byte("q /tmp 1777 root root -\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := cleanedAfter("/tmp/box", dirs); got != "" {
		t.Errorf("a file that hides the rule: cleaned after %q; want not at all", got)
	}
}
