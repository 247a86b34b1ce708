package mailbox_test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/mailbox"
)

// draft drafts a result, if the file system supports it.
func draft(t *testing.T, box *mailbox.Box, text string) *mailbox.Draft {
	t.Helper()
	p, err := box.DraftResult([]byte(text), 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip("files always have names here")
	}
	must(t, err)
	t.Cleanup(p.Drop)
	return p
}

// openIn counts our descriptors of files in a directory.
func openIn(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, f := range files {
		if path, _ := os.Readlink("/proc/self/fd/" + f.Name()); strings.HasPrefix(path, dir+"/") {
			n++
		}
	}
	return n
}

func TestADraftIsInvisibleUntilItIsPut(t *testing.T) {
	box := open(t)
	p := draft(t, box, "{}")
	if left, err := os.ReadDir(box.ResultsDir()); len(left) > 0 || err != nil {
		t.Errorf("results/ has %v, %v; want nothing", left, err)
	}
	must(t, p.Put("t"))
	if got := read(t, box.ResultsDir()+"/t.json"); got != "{}" {
		t.Errorf("result = %q, want {}", got)
	}
	info, err := os.Stat(box.ResultsDir() + "/t.json")
	must(t, err)
	if info.Mode() != 0o600 {
		t.Errorf("mode = %v, want -rw-------", info.Mode())
	}
	if n := openIn(t, box.ResultsDir()); n > 0 {
		t.Errorf("%d files are open; want none", n)
	}
}

func TestADraftThatIsDroppedLeavesNothing(t *testing.T) {
	box := open(t)
	p := draft(t, box, "{}")
	if n := openIn(t, box.ResultsDir()); n != 1 {
		t.Errorf("%d files are open; want that of the draft", n)
	}
	p.Drop()
	p.Drop()
	left, err := os.ReadDir(box.ResultsDir())
	if n := openIn(t, box.ResultsDir()); n > 0 || len(left) > 0 || err != nil {
		t.Errorf("%d files are open, and results/ has %v, %v; want nothing", n, left, err)
	}
	must(t, p.Put("t")) // a later Put still writes the result
	if got := read(t, box.ResultsDir()+"/t.json"); got != "{}" {
		t.Errorf("result = %q, want {}", got)
	}
}

func TestADraftOverwritesNothing(t *testing.T) {
	box := open(t)
	write(t, box.ResultsDir()+"/t.json", "theirs")
	if err := draft(t, box, "ours").Put("t"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Put over a file = %v, want fs.ErrExist", err)
	}
	if got := read(t, box.ResultsDir()+"/t.json"); got != "theirs" {
		t.Errorf("result = %q, want theirs", got)
	}
}

func TestADraftIsPutIntoTheCurrentDirectory(t *testing.T) {
	for name, elsewhere := range map[string]bool{"of the same file system": false, "of another": true} {
		t.Run(name, func(t *testing.T) {
			box := open(t)
			p := draft(t, box, "{}")
			must(t, os.Rename(box.Path(), box.Path()+".old"))
			must(t, os.Mkdir(box.Path(), 0o700))
			if elsewhere {
				mountSmall(t, box.Path())
			}
			if _, err := box.Refresh(); err != nil {
				t.Fatal(err)
			}
			must(t, p.Put("t"))
			if got := read(t, box.ResultsDir()+"/t.json"); got != "{}" {
				t.Errorf("result = %q, want {}", got)
			}
		})
	}
}

func TestThereIsNoDraftOnAFullDisk(t *testing.T) {
	path := open(t).Path()
	full := mountSmall(t, path)
	box := openAt(t, path)
	if _, err := box.DraftResult(make([]byte, full), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("DraftResult = %v, want ENOSPC", err)
	}
	if n := openIn(t, box.ResultsDir()); n > 0 {
		t.Errorf("%d files are open; want none", n)
	}
}
