package doctor

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// logindDirs have the configuration of systemd-logind, the most important one last.
var logindDirs = []string{"/usr/lib/systemd", "/usr/local/lib/systemd", "/run/systemd", "/etc/systemd"}

// logout warns if a logout kills processes: a keeper that was started in a login, such as that of ssh for a
// runner, and its runs end with it.
func (d *checker) logout(context.Context) {
	if file := killsAtLogout(logindDirs); file != "" {
		d.warn("logout", "write KillUserProcesses=no to "+file+", then: systemctl restart systemd-logind",
			"%s has KillUserProcesses=yes, so runs end with the login that started mailboxd serve or mailboxd runner, such as that of ssh", file)
	}
}

// killsAtLogout returns the file with the KillUserProcesses=yes that counts; "" for none. A drop-in counts
// more than logind.conf, by its name, and one in a later directory replaces another of its name.
func killsAtLogout(dirs []string) (file string) {
	var files []string
	byName := map[string]string{}
	for _, dir := range dirs {
		if main := filepath.Join(dir, "logind.conf"); isFile(main) {
			files = []string{main}
		}
		dropIns, _ := filepath.Glob(filepath.Join(dir, "logind.conf.d", "*.conf")) // the pattern is good
		for _, path := range dropIns {
			byName[filepath.Base(path)] = path
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		files = append(files, byName[name])
	}
	for _, path := range files {
		text, _ := os.ReadFile(path) // what can't be read has nothing to warn of
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if strings.TrimSpace(key) != "KillUserProcesses" {
				continue
			}
			file = ""
			if slices.Contains([]string{"yes", "true", "on", "1"}, strings.ToLower(strings.TrimSpace(value))) {
				file = path
			}
		}
	}
	return file
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
