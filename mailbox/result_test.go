package mailbox_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/mailbox"
)

// ways are the two ways to put a result; a file system has at least the second.
var ways = map[string]func(box *mailbox.Box, name string, data []byte, mode fs.FileMode) error{
	"nameless": mailbox.PutNameless,
	"named":    mailbox.PutNamed,
}

func TestAResultIsPutWholeOrNotAtAll(t *testing.T) {
	for name, put := range ways {
		t.Run(name, func(t *testing.T) {
			box := open(t)
			must(t, put(box, "t.json", []byte(`{"a":1}`), 0o600))
			if err := put(box, "t.json", []byte(`{"a":2}`), 0o600); !errors.Is(err, fs.ErrExist) {
				t.Errorf("a second put = %v, want fs.ErrExist", err)
			}
			must(t, os.Symlink("nowhere", box.ResultsDir()+"/link.json"))
			if err := put(box, "link.json", nil, 0o600); !errors.Is(err, fs.ErrExist) {
				t.Errorf("a put over a symlink = %v, want fs.ErrExist", err)
			}
			if got := read(t, box.ResultsDir()+"/t.json"); got != `{"a":1}` {
				t.Errorf("result = %s, want the first", got)
			}
			info, err := os.Stat(box.ResultsDir() + "/t.json")
			must(t, err)
			if info.Mode() != 0o600 {
				t.Errorf("mode = %v, want -rw-------", info.Mode())
			}
			left, err := os.ReadDir(box.Path() + "/.mailboxd/tmp")
			if len(left) > 0 || err != nil {
				t.Errorf("left behind: %v, %v; want nothing", left, err)
			}
		})
	}
}

func TestAResultThatCannotBeWrittenIsNotSeen(t *testing.T) { // row 31
	for name, put := range ways {
		t.Run(name, func(t *testing.T) {
			path := open(t).Path()
			full := mountSmall(t, path)
			box := openAt(t, path)
			err := put(box, "t.json", make([]byte, full), 0o600)
			if !errors.Is(err, unix.ENOSPC) {
				t.Errorf("put on a full disk = %v, want ENOSPC", err)
			}
			for _, dir := range []string{box.ResultsDir(), box.Path() + "/.mailboxd/tmp"} {
				if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
					t.Errorf("left behind: %v, %v; want nothing", left, err)
				}
			}
			must(t, put(box, "t.json", []byte("{}"), 0o600)) // there is room for a small one
		})
	}
}

// mountSmall mounts a small file system with the directories of a mailbox in its place, and
// returns a size that does not fit on it.
func mountSmall(t *testing.T, path string) int {
	t.Helper()
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Skipf("no file system to fill: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(path, unix.MNT_DETACH) })
	for _, name := range []string{"/tasks", "/results", "/.mailboxd", "/.mailboxd/tmp"} {
		must(t, os.Mkdir(path+name, 0o700))
	}
	return 2 << 20
}

func TestAResultOnAReadOnlyDiskIsAnError(t *testing.T) { // row 31
	path := open(t).Path()
	mountSmall(t, path)
	box := openAt(t, path)
	must(t, unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if err := box.PutResult("t", []byte("{}"), 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("PutResult = %v, want EROFS", err)
	}
	if err := box.AppendQueue("q", []byte("{}")); !errors.Is(err, unix.EROFS) {
		t.Errorf("AppendQueue = %v, want EROFS", err)
	}
	openAt(t, path) // to read from it, it will do
}

func TestAResultReplacesTheLostOneOfALostDirectory(t *testing.T) { // row 32
	box := open(t)
	must(t, os.RemoveAll(box.ResultsDir()))
	if err := box.PutResult("t", []byte("{}"), 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("PutResult without results/ = %v, want fs.ErrNotExist", err)
	}
	must(t, os.Mkdir(box.ResultsDir(), 0o700)) // another directory than before
	must(t, box.PutResult("t", []byte("{}"), 0o600))
	if !box.HasResult("t") {
		t.Error("HasResult = false, want true")
	}
}

func TestResultsMayLieBehindASymlinkThatStaysInside(t *testing.T) {
	box := open(t)
	must(t, os.Remove(box.ResultsDir()))
	must(t, os.Mkdir(box.Path()+"/elsewhere", 0o700))
	must(t, os.Symlink("elsewhere", box.ResultsDir()))
	must(t, box.PutResult("t", []byte("{}"), 0o600))
	if got := read(t, box.Path()+"/elsewhere/t.json"); got != "{}" || !box.HasResult("t") {
		t.Errorf("elsewhere/t.json = %q, HasResult = %v; want {}, true", got, box.HasResult("t"))
	}
	must(t, os.Remove(box.ResultsDir()))
	outside := t.TempDir()
	must(t, os.Symlink(outside, box.ResultsDir()))
	write(t, outside+"/u.json", "{}")
	if err := box.PutResult("t", []byte("{}"), 0o600); err == nil || box.HasResult("u") {
		t.Errorf("PutResult behind a symlink that leads outside = %v, HasResult = %v; want an error, false", err, box.HasResult("u"))
	}
}

func TestEveryLegalIDHasItsResult(t *testing.T) { // rows 16, 17 and 18
	box := open(t)
	var ids []envelope.ID
	for _, text := range []string{".", "-rf", ".hidden", "x.json", `a\b`, "CON", "nul.", "a b ", "%2e%2e", "Task-1", "task-1", strings.Repeat("é", 125), "~", "*", "日本"} {
		id, err := envelope.ParseID(text)
		must(t, err)
		ids = append(ids, id)
		must(t, box.PutResult(id, []byte(text), 0o600))
	}
	for _, id := range ids {
		if data, info, err := box.ReadResult(id); string(data) != string(id) || err != nil || !info.Mode().IsRegular() {
			t.Errorf("ReadResult(%q) = %q, %v, %v; want the id", id, data, info, err)
		}
	}
	for _, id := range ids {
		must(t, box.RemoveResult(id))
		must(t, box.RemoveResult(id)) // none there is fine
		if box.HasResult(id) {
			t.Errorf("HasResult(%q) after RemoveResult = true", id)
		}
	}
}

func TestOnlyARegularFileInsideIsAResult(t *testing.T) { // row 31
	box := open(t)
	write(t, box.Path()+"/kept", "{}")
	must(t, os.Symlink("../kept", box.ResultsDir()+"/inside.json"))
	must(t, os.Symlink("/etc/hostname", box.ResultsDir()+"/outside.json"))
	must(t, os.Mkdir(box.ResultsDir()+"/dir.json", 0o700))
	must(t, unix.Mkfifo(box.ResultsDir()+"/fifo.json", 0o600))
	write(t, box.ResultsDir()+"/huge.json", "")
	must(t, os.Truncate(box.ResultsDir()+"/huge.json", mailbox.MaxResult+1))
	if data, _, err := box.ReadResult("inside"); string(data) != "{}" || err != nil {
		t.Errorf("ReadResult(inside) = %q, %v; want {}, nil", data, err)
	}
	if data, err := mailbox.ReadResult(box.Path(), "inside"); string(data) != "{}" || err != nil {
		t.Errorf("ReadResult(root, inside) = %q, %v; want {}, nil", data, err)
	}
	for _, id := range []envelope.ID{"outside", "dir", "fifo", "huge"} {
		if data, _, err := box.ReadResult(id); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("ReadResult(%s) = %d bytes, %v; want an error other than fs.ErrNotExist", id, len(data), err)
		}
		if data, err := mailbox.ReadResult(box.Path(), id); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("ReadResult(root, %s) = %d bytes, %v; want an error other than fs.ErrNotExist", id, len(data), err)
		}
		if !box.HasResult(id) {
			t.Errorf("HasResult(%s) = false although the name is taken", id)
		}
	}
	if _, _, err := box.ReadResult("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadResult(none) = %v, want fs.ErrNotExist", err)
	}
	if got, want := box.HaveResults([]envelope.ID{"none", "outside", "inside", "gone", "dir"}), []bool{false, true, true, false, true}; !slices.Equal(got, want) {
		t.Errorf("HaveResults = %v, want %v", got, want)
	}
	must(t, os.RemoveAll(box.ResultsDir()))
	if got := box.HaveResults([]envelope.ID{"inside"}); got[0] {
		t.Error("HaveResults = true although the directory is gone")
	}
}

func BenchmarkPutResult(b *testing.B) {
	box := open(b)
	data := []byte(strings.Repeat("x", 1024))
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		if err := box.PutResult(envelope.ID(fmt.Sprint("t", n)), data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
}
