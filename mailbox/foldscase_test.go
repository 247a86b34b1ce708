package mailbox_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/mailbox"
)

// refused fails unless the mailbox cannot be opened for its upper and lower
// case (row 18).
func refused(t *testing.T, root string) {
	t.Helper()
	box, err := mailbox.Open(root)
	if err == nil {
		box.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "does not tell a.json from A.json") {
		t.Errorf("Open = %v; want an error about upper and lower case", err)
	}
}

func TestOpenRefusesAFileSystemThatFoldsCase(t *testing.T) { // row 18
	root := open(t).Path()
	must(t, os.Mkdir(root+"/RESULTS", 0o700))
	// One directory under both names is all that such a file system shows.
	if err := unix.Mount(root+"/results", root+"/RESULTS", "", unix.MS_BIND, ""); err != nil {
		t.Skipf("cannot give results/ a second name: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(root+"/RESULTS", unix.MNT_DETACH) })
	refused(t, root)
}

func TestOpenRefusesADirectoryThatFoldsCase(t *testing.T) { // row 18
	root := t.TempDir()
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=1m,mode=0700,casefold"); err != nil {
		t.Skipf("no file system that can fold case: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(root, unix.MNT_DETACH) })
	must(t, os.Mkdir(root+"/results", 0o700))
	dir, err := os.Open(root + "/results")
	must(t, err)
	defer dir.Close()
	must(t, unix.IoctlSetPointerInt(int(dir.Fd()), unix.FS_IOC_SETFLAGS, 0x40000000))
	refused(t, root)
}
