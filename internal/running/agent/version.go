package agent

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// versionOf returns the version of a program without running it, since a person is still to be
// asked whether anything runs: that of its npm package, or the one in its path with links resolved,
// as self-updating programs have it. Otherwise its content stands for the version.
func (p *Planner) versionOf(program string) string {
	path, err := filepath.EvalSymlinks(program)
	if err != nil {
		return "unknown"
	}
	if version := installedVersion(path); version != "" {
		return version
	}
	return p.hashes.Of(path)
}

// installedVersion returns the version that the files of a program say, whose path has no links;
// "" for none.
func installedVersion(path string) string {
	if version := packageVersion(path); version != "" {
		return version
	}
	for _, part := range slices.Backward(strings.Split(path, "/")) {
		if found := versionInName.FindStringSubmatch(part); found != nil {
			return found[1]
		}
	}
	return ""
}

// A Version is that of the program of an agent.
type Version struct {
	Program string // its path
	Found   string // as its files say it, such as "opencode-ai 2.0.0"
	Tested  string // that of the tests, such as "1.18"
}

// Untested returns the version of a binding's program if mailboxd was not tested with that major
// version, and false otherwise. It runs nothing, so a version that only the program itself says is
// not looked at.
func (b Binding) Untested() (Version, bool) {
	command := b.Command
	if b.Worker != nil {
		command = b.Worker.Command
	}
	if len(command) == 0 {
		return Version{}, false
	}
	program, err := findProgram(command[0])
	if err != nil {
		return Version{}, false // its runs say it
	}
	path, err := filepath.EvalSymlinks(program)
	if err != nil {
		return Version{}, false
	}
	v := Version{Program: program, Found: installedVersion(path)}
	v.Tested = UntestedVersion(program, v.Found)
	return v, v.Tested != ""
}

// versionInName is the version in a name such as 2.1.45, v0.46.0 or codex-0.46.0.
var versionInName = regexp.MustCompile(`^(?:[A-Za-z][A-Za-z_-]*-)?v?([0-9]+\.[0-9]+[0-9A-Za-z.+_-]*)$`)

// packageVersion returns name and version of the npm package that a program is part of; "" if it is
// part of none.
func packageVersion(program string) string {
	const largest = 1 << 20
	for dir := filepath.Dir(program); strings.Contains(dir, "/node_modules/"); dir = filepath.Dir(dir) {
		file := filepath.Join(dir, "package.json")
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || info.Size() > largest {
			continue
		}
		text, err := os.ReadFile(file)
		var of struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		}
		if err == nil && json.Unmarshal(text, &of, lenient) == nil && of.Version != "" {
			return strings.TrimSpace(of.Name + " " + of.Version)
		}
	}
	return ""
}
