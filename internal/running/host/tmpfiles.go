package host

import (
	"os"
	"path/filepath"
	"strings"
)

// tmpfilesDirs are where systemd-tmpfiles is told what to clean; a file hides
// those of its name in later ones (tmpfiles.d(5)).
var tmpfilesDirs = []string{"/etc/tmpfiles.d", "/run/tmpfiles.d", "/usr/local/lib/tmpfiles.d", "/usr/lib/tmpfiles.d"}

// CleanedAfter returns the age, as systemd writes it ("10d"), at which what
// lies in path is deleted; "" when nothing says so.
func CleanedAfter(path string) string { return cleanedAfter(path, tmpfilesDirs) }

func cleanedAfter(path string, dirs []string) (age string) {
	hidden, longest := map[string]bool{}, ""
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(dir, "*.conf")) // the pattern is good
		for _, file := range files {
			if hidden[filepath.Base(file)] {
				continue
			}
			hidden[filepath.Base(file)] = true
			text, err := os.ReadFile(file)
			if err != nil {
				continue // not ours to read, so we cannot say
			}
			for line := range strings.Lines(string(text)) {
				words := append(strings.Fields(line), "", "", "", "", "", "") // type path, and what may be left out: mode user group age
				if words[1] == "" || words[0][0] == '#' || !above(words[1], path) || len(words[1]) < len(longest) {
					continue
				}
				longest, age = words[1], strings.Trim(words[5], "-")
			}
		}
	}
	return age
}

// above reports whether dir is path or one that it lies in.
func above(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
