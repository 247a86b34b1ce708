// Package a2acli builds the command line program of the Go SDK of A2A for tests: a server and a client that
// are not mailboxd's. The module beside it, in internal/testtools/a2a, pins its version.
package a2acli

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// Build builds the program at its first call, and returns its path in Go's build cache.
var Build = sync.OnceValues(func() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return "", fmt.Errorf("build the a2a program: the directory of its module is unknown: the test was built with -trimpath")
	}
	var errs bytes.Buffer
	build := exec.Command("go", "tool", "-n", "a2a")
	build.Dir, build.Stderr = filepath.Join(filepath.Dir(filepath.Dir(file)), "a2a"), &errs
	path, err := build.Output()
	if err != nil {
		return "", fmt.Errorf("build the a2a program in %s: %w: %s", build.Dir, err, errs.Bytes())
	}
	return strings.TrimSpace(string(path)), nil
})
