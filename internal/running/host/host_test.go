package host

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestInotifyInstancesAndTheirWatchesAreCounted(t *testing.T) {
	const mine = "/proc/self/fd/*"
	watches, instances := used(mine)
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for range 2 {
		if _, err := unix.InotifyAddWatch(fd, t.TempDir(), unix.IN_CREATE); err != nil {
			t.Fatal(err)
		}
	}
	if w, i := used(mine); w-watches != 2 || i-instances != 1 {
		t.Errorf("counted %d watches and %d instances more; want 2 and 1", w-watches, i-instances)
	}
	w, i, err := Inotify()
	if err != nil || w.Used < 2 || i.Used < 1 || w.Max <= 0 || i.Max <= 0 {
		t.Errorf("Inotify = %+v, %+v, %v; want at least ours, and the kernel's limits", w, i, err)
	}
}

func TestTheDiskOfAPathThatIsNotThereIsAnError(t *testing.T) {
	if d, err := DiskOf(t.TempDir()); err != nil || d.Bytes == 0 {
		t.Errorf("DiskOf(a directory) = %+v, %v; want some room", d, err)
	}
	if _, err := DiskOf(t.TempDir() + "/none"); err == nil {
		t.Error("DiskOf(nothing) = nil; want an error")
	}
}
