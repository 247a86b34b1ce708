package dispatch_test

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// alone runs the test anew in a process of its own, and reports whether this is
// that: a limit of the process is not to meet the log that "go test" keeps in it.
func alone(t *testing.T) bool {
	t.Helper()
	const name = "DISPATCH_TEST_ALONE"
	if os.Getenv(name) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), name+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("in a process of its own: %v\n%s", err, out)
	}
	return false
}

// limitFiles has writes fail behind so many bytes of any file, until the test is over.
func (e *engine) limitFiles(bytes uint64) {
	e.t.Helper()
	var limit unix.Rlimit
	e.must(unix.Getrlimit(unix.RLIMIT_FSIZE, &limit))
	before := limit
	limit.Cur = min(bytes, limit.Max)
	e.must(unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
	e.t.Cleanup(func() { e.must(unix.Setrlimit(unix.RLIMIT_FSIZE, &before)) })
}
