package backup

import (
	"errors"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/internal/testtools/slowtest"
)

// A depth at which work that grows with its square takes minutes.
func TestAMoveCopiesADeepTreeInLinearTime(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	const depth = 2500
	from, to := twoDisks(t)
	fd, err := unix.Open(from.State, unix.O_PATH|unix.O_DIRECTORY, 0)
	for range depth {
		if err == nil {
			err = unix.Mkdirat(fd, "deep", 0o700)
		}
		var next int
		if err == nil {
			next, err = unix.Openat(fd, "deep", unix.O_PATH|unix.O_DIRECTORY, 0)
		}
		if err = errors.Join(err, unix.Close(fd)); err != nil {
			t.Fatal(err)
		}
		fd = next
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	if err := Move(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	wantMoved(t, from, to, line)
	found := 0
	for dir := to.State; exists(filepath.Join(dir, "deep")) && found < 100; found++ {
		dir = filepath.Join(dir, "deep")
	}
	if found != 100 {
		t.Errorf("the copy has %d directories in each other; want %d", found, depth)
	}
}
