package dirtree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/internal/testtools/slowtest"
)

const nobody = 65534

// asNobody calls do on a thread of a user whom permissions bind.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		do()
		return
	}
	var thread sync.WaitGroup
	thread.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			if _, _, errno := unix.RawSyscall(call, nobody, nobody, nobody); errno != 0 {
				t.Error(errno)
				return
			}
		}
		do()
	})
	thread.Wait()
}

// directory returns a directory that nobody may write to.
func directory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for up := dir; up != os.TempDir() && up != "/"; up = filepath.Dir(up) {
		must(t, os.Chmod(up, 0o777))
	}
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func rootOf(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}

// A Go module cache has directories without write permission, and an agent may leave some that
// can't be read or entered either.
func TestDirectoriesWithoutPermissionsAreRemoved(t *testing.T) {
	for _, mode := range []fs.FileMode{0o555, 0o444, 0o311, 0} {
		t.Run(mode.String(), func(t *testing.T) {
			dir := directory(t)
			root := rootOf(t, dir)
			asNobody(t, func() {
				inner := filepath.Join(dir, "run", "pkg", "mod")
				err := errors.Join(os.MkdirAll(inner, 0o777), os.WriteFile(filepath.Join(inner, "go.mod"), nil, 0o444))
				for _, path := range []string{inner, filepath.Dir(inner), filepath.Join(dir, "run")} {
					err = errors.Join(err, os.Chmod(path, mode))
				}
				if err = errors.Join(err, RemoveIn(root, "run")); err != nil {
					t.Error(err)
				}
			})
			if _, err := os.Lstat(filepath.Join(dir, "run")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("run is there: %v; want it removed", err)
			}
		})
	}
}

// What a link leads to keeps its content and its mode.
func TestALinkIsRemovedAndNotFollowed(t *testing.T) {
	dir := directory(t)
	root := rootOf(t, dir)
	asNobody(t, func() {
		outside := filepath.Join(dir, "outside")
		err := errors.Join(os.Mkdir(outside, 0o700), os.WriteFile(filepath.Join(outside, "file"), nil, 0o600), os.Chmod(outside, 0o555),
			os.Mkdir(filepath.Join(dir, "run"), 0o700), os.Symlink(outside, filepath.Join(dir, "run", "link")), RemoveIn(root, "run"))
		if err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o555 {
			t.Errorf("outside = %v, %v; want its mode as it was", info, err)
		}
		if _, err := os.Stat(filepath.Join(outside, "file")); err != nil {
			t.Error(err)
		}
		if err := errors.Join(os.Symlink(outside, filepath.Join(dir, "above")), RemoveIn(root, "above/file")); err == nil {
			t.Error("RemoveIn(through a link) = nil; want an error")
		}
	})
}

// A directory of another user stays, is counted once, and the rest is removed.
func TestWhatCannotBeRemovedIsCountedAndTheRestIsRemoved(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("two users are needed")
	}
	dir := directory(t)
	root := rootOf(t, dir)
	foreign := filepath.Join(dir, "run", "a", "foreign")
	must(t, os.MkdirAll(foreign, 0o755))
	must(t, os.WriteFile(filepath.Join(foreign, "file"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "run", "z"), nil, 0o600))
	for _, path := range []string{"run", "run/a", "run/z"} {
		must(t, os.Chown(filepath.Join(dir, path), nobody, nobody))
	}
	asNobody(t, func() {
		err := RemoveIn(root, "run")
		left, ok := errors.AsType[*LeftError](err)
		if !ok || left.Count != 1 || left.Path != "run/a/foreign/file" || !errors.Is(err, fs.ErrPermission) {
			t.Errorf("RemoveIn = %v; want that run/a/foreign/file is left", err)
		}
	})
	if _, err := os.Lstat(filepath.Join(dir, "run", "z")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("z is there: %v; want it removed", err)
	}
}

// A depth at which work that grows with its square takes minutes, and paths are too long for a
// system call.
func TestADeepTreeIsMeasuredAndRemovedInLinearTime(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	const depth = 5_000
	dir := directory(t)
	root := rootOf(t, dir)
	must(t, os.Mkdir(filepath.Join(dir, "run"), 0o700))
	makeDeep(t, filepath.Join(dir, "run"), depth)
	before := openFiles(t)
	size, err := MeasureIn(root, "run")
	if err != nil || size.Bytes < depth || size.Changed.IsZero() {
		t.Errorf("MeasureIn = %+v, %v; want the bytes of %d directories", size, err, depth)
	}
	if err := RemoveIn(root, "run"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "run")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("run is there: %v; want it removed", err)
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d files are open; want the %d of before", after, before)
	}
}

// makeDeep makes directories in each other, with names of 200 bytes.
func makeDeep(t *testing.T, dir string, depth int) {
	t.Helper()
	name := strings.Repeat("x", 200)
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(fd, name, 0o700))
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY, 0)
		must(t, errors.Join(err, unix.Close(fd)))
		fd = next
	}
	must(t, unix.Close(fd))
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(names)
}

// A cursor holds few directories open, however deep it is, and finds the way back.
func TestACursorHoldsFewDirectoriesOpen(t *testing.T) {
	const depth = 5 * mostOpen
	dir := directory(t)
	makeDeep(t, dir, depth)
	before := openFiles(t)
	c, err := Open(dir, Options{})
	must(t, err)
	defer c.Close()
	for range depth {
		must(t, c.Enter(strings.Repeat("x", 200)))
	}
	if more := openFiles(t) - before; more > mostOpen+1 {
		t.Errorf("%d directories are open; want at most %d", more, mostOpen+1)
	}
	if path := c.Path("end"); len(path) > 20*201+10 || !strings.HasSuffix(path, "/end") || !strings.Contains(path, "/.../") {
		t.Errorf("the path has %d bytes: %.300s; want it shortened in the middle", len(path), path)
	}
	for range depth {
		must(t, c.Leave())
	}
	var here, there unix.Stat_t
	must(t, errors.Join(unix.Fstat(c.FD(), &here), unix.Stat(dir, &there)))
	if here.Ino != there.Ino {
		t.Error("the cursor is in another directory; want the first one")
	}
}

func TestAMissingPathIsNoError(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(RemoveIn(rootOf(t, dir), "a/b"), Remove(filepath.Join(dir, "c", "d"))); err != nil {
		t.Error(err)
	}
}

func TestEmptyKeepsTheDirectoryAndNamedEntries(t *testing.T) {
	dir := t.TempDir()
	must(t, errors.Join(os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700), os.WriteFile(filepath.Join(dir, "kept"), nil, 0o600)))
	must(t, Empty(dir, func(name string) bool { return name == "kept" }))
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "kept" {
		t.Errorf("the directory has %v, %v; want kept alone", left, err)
	}
}
