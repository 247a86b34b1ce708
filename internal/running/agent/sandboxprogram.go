package agent

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"mailboxd/internal/sandboxing/sandbox"
)

// programPaths returns what a sandbox needs to run a program that isn't part of the system:
// the program, its package, and the interpreter of a script. It leaves out what the sandbox
// has.
func programPaths(program string, r sandbox.Run) []sandbox.Path {
	var paths []sandbox.Path
	add := func(name, real string) {
		shown := func(dir sandbox.Path) bool { return dir.Real != "" && sandbox.Within(dir.Real, real) }
		if inSystem(real, r.System) && inSystem(name, r.System) || slices.ContainsFunc(r.Write, shown) || shown(r.Cwd) {
			return
		}
		paths = append(paths, sandbox.Path{Name: name, Real: real})
	}
	for _, name := range []string{program, interpreter(program)} {
		real, err := filepath.EvalSymlinks(name)
		if name == "" || err != nil {
			continue
		}
		add(name, real)
		if tree := packageOf(real); tree != "" {
			add(tree, tree)
		}
	}
	return paths
}

// packageOf returns the directory with the modules of an npm package; "" for another program.
func packageOf(program string) string {
	const modules = "/node_modules"
	if at := strings.Index(program, modules+"/"); at >= 0 {
		return program[:at+len(modules)]
	}
	return ""
}

// interpreter returns the program that the first line of a script names; "" for none.
func interpreter(program string) string {
	f, err := os.Open(program)
	if err != nil {
		return ""
	}
	defer f.Close()
	const enough = 256 // the limit of the kernel
	buf := make([]byte, enough)
	n, _ := f.Read(buf)
	line, _, _ := bytes.Cut(buf[:n], []byte("\n"))
	rest, ok := bytes.CutPrefix(line, []byte("#!"))
	words := strings.Fields(string(rest))
	if !ok || len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) != "env" {
		return words[0]
	}
	for _, word := range words[1:] {
		if strings.HasPrefix(word, "-") || strings.Contains(word, "=") {
			continue
		}
		path, err := exec.LookPath(word)
		if err != nil {
			return ""
		}
		return path
	}
	return ""
}
