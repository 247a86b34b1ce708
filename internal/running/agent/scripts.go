package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// interpreters are the programs that run the first file among their arguments, without a version at
// the end of the name.
var interpreters = []string{
	"sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "python", "pypy", "uv", "node", "nodejs", "deno", "bun", "tsx", "ts-node",
	"ruby", "perl", "php", "lua", "luajit", "Rscript", "julia", "tclsh", "java", "awk", "gawk", "make", "pwsh", "elixir", "guile",
}

// launchers are the programs that run the program that their arguments name.
var launchers = []string{"env", "nice", "ionice", "nohup", "setsid", "stdbuf", "time", "timeout", "taskset", "chrt", "xvfb-run", "sudo"}

// scriptNames are how the names of scripts end.
var scriptNames = []string{
	".sh", ".bash", ".zsh", ".ksh", ".fish", ".py", ".pyc", ".pyz", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx",
	".rb", ".pl", ".php", ".lua", ".r", ".jl", ".tcl", ".jar", ".awk", ".sed", ".ps1", ".exs", ".scm", ".wasm",
}

// A candidate is a file that an argument names.
type candidate struct {
	path     string // "" for no file
	content  string // its digest; "": not known yet
	runnable bool   // by its mode, its name or its first line
}

// scriptsOf returns the programs and scripts among the arguments of a command: files that can be
// run, and the first file after an interpreter. Find returns the file that an argument names.
// Arguments with a template aren't looked at unless the command is literal: they depend on the run.
func scriptsOf(command []string, literal bool, find func(name string) candidate) (found []candidate) {
	interprets, launches := startsOthers(command[0])
	for _, argument := range command[1:] {
		if !literal && strings.Contains(argument, "{{") {
			continue
		}
		name := fileName(argument)
		if bare := !strings.ContainsAny(name, "/="); launches && bare && name == argument {
			if path, err := exec.LookPath(name); err == nil {
				found = append(found, candidate{path: path})
				interprets, launches = startsOthers(name)
				continue
			}
		}
		if file := find(name); file.path != "" && (file.runnable || interprets) {
			found = append(found, file)
			interprets, launches = startsOthers(name)
		}
	}
	return found
}

// startsOthers reports whether a program is an interpreter, and whether it starts the program that
// its arguments name.
func startsOthers(program string) (interprets, launches bool) {
	name := filepath.Base(program)
	return slices.Contains(interpreters, strings.TrimRight(name, ".0123456789")), slices.Contains(launchers, name)
}

// fileName returns the file that an argument may name: itself, or the value of an option.
func fileName(argument string) string {
	if strings.HasPrefix(argument, "--") {
		if _, value, ok := strings.Cut(argument, "="); ok {
			return value
		}
	}
	return argument
}

// relativeArguments returns the arguments that may name files of the directory of a run.
func relativeArguments(command []string, literal bool) (names []string) {
	for _, argument := range command[1:] {
		name := fileName(argument)
		if name != "" && !filepath.IsAbs(name) && !strings.HasPrefix(name, "-") && (literal || !strings.Contains(argument, "{{")) {
			names = append(names, name)
		}
	}
	return names
}

// findCandidate returns the file that an argument names. A relative path starts at the directory of
// the run; without one, the run has an empty directory.
func findCandidate(cwd, name string) candidate {
	if !filepath.IsAbs(name) {
		if cwd == "" || name == "" {
			return candidate{}
		}
		name = filepath.Join(cwd, name)
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return candidate{}
	}
	return candidate{path: name, runnable: info.Mode().Perm()&0o111 != 0 || hasScriptName(name) || beginsAsScript(name)}
}

// hasScriptName reports whether a name ends like that of a script.
func hasScriptName(name string) bool {
	return slices.Contains(scriptNames, strings.ToLower(filepath.Ext(name)))
}

// beginsAsScript reports whether the first line of a file names its interpreter.
func beginsAsScript(path string) bool {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	var start [2]byte
	n, _ := file.Read(start[:])
	return string(start[:n]) == "#!"
}
