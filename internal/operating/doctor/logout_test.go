package doctor

import (
	"os"
	"path/filepath"
	"testing"
)

func TestALogoutThatKillsProcessesIsFoundInTheFileThatCounts(t *testing.T) {
	const dropIn = "usr/logind.conf.d/10-kill.conf"
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing":   {nil, ""},
		"a comment": {map[string]string{"etc/logind.conf": "[Login]\n#KillUserProcesses=yes\n"}, ""},
		"the file":  {map[string]string{"etc/logind.conf": "[Login]\nKillUserProcesses=yes\n"}, "etc/logind.conf"},
		"a drop-in": {map[string]string{"etc/logind.conf": "", dropIn: "[Login]\nKillUserProcesses = on\n"}, dropIn},
		"a later drop-in says no": {
			map[string]string{dropIn: "KillUserProcesses=yes", "etc/logind.conf.d/20-no.conf": "KillUserProcesses=no"}, "",
		},
		"a replaced drop-in": {map[string]string{dropIn: "KillUserProcesses=yes", "etc/logind.conf.d/10-kill.conf": ""}, ""},
	} {
		top := t.TempDir()
		for path, text := range c.files {
			path = filepath.Join(top, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want := ""
		if c.want != "" {
			want = filepath.Join(top, c.want)
		}
		if got := killsAtLogout([]string{filepath.Join(top, "usr"), filepath.Join(top, "etc")}); got != want {
			t.Errorf("%s: %q; want %q", name, got, want)
		}
	}
}
