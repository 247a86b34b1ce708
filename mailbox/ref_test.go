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

func TestAReferenceStaysInsideTheRoots(t *testing.T) { // row 30
	box := open(t)
	more, other := t.TempDir(), t.TempDir()
	must(t, os.Mkdir(box.Path()+"/examples", 0o700))
	must(t, os.Mkdir(box.Path()+"/host", 0o700))
	write(t, box.Path()+"/examples/a.lang", "a")
	write(t, box.Path()+"/host/x", "x")
	write(t, box.Path()+"/huge", "")
	must(t, os.Truncate(box.Path()+"/huge", 10<<30))
	write(t, more+"/b.lang", "b")
	write(t, other+"/secret", "s")
	must(t, unix.Mkfifo(box.Path()+"/fifo", 0o600))
	for name, target := range map[string]string{
		"in": "examples/a.lang", "out": other + "/secret", "outdir": other, "up": "../..", "more": more + "/b.lang", "loop": "loop",
	} {
		must(t, os.Symlink(target, box.Path()+"/"+name))
	}
	for uri, want := range map[string]error{
		"file://examples/a.lang":              nil,
		"FILE://examples/a.lang":              nil,
		"file://host/x":                       nil,
		"file://huge":                         nil,
		"file://in":                           nil,
		"file://b.lang":                       nil, // in the second root
		"file://more":                         nil,
		"file://" + more + "/b.lang":          nil,
		"file:" + more + "/b.lang":            nil,
		"file://" + box.Path() + "/in":        nil,
		"file://examples%2Fa.lang":            nil,
		"http://localhost/x":                  nil,
		"memory://workflow/../../etc":         nil,
		"../../etc/shadow":                    nil, // plain text: CheckRef does not know its meaning
		"file:///etc/shadow":                  mailbox.ErrOutside,
		"file:/etc/shadow":                    mailbox.ErrOutside,
		"file:///no/such/file":                mailbox.ErrOutside,
		"file://../../x":                      mailbox.ErrOutside,
		"file://%2e%2e/x":                     mailbox.ErrOutside,
		"file://examples/../../x":             mailbox.ErrOutside,
		"file://out":                          mailbox.ErrOutside,
		"file://outdir/secret":                mailbox.ErrOutside,
		"file://outdir/none":                  mailbox.ErrOutside,
		"file://up/x":                         mailbox.ErrOutside,
		"file://outdir/../examples":           mailbox.ErrOutside,
		"file://" + box.Path() + "/out":       mailbox.ErrOutside,
		"file://" + box.Path() + "2/x":        mailbox.ErrOutside,
		"file://examples":                     mailbox.ErrNotRegular,
		"file://":                             mailbox.ErrNotRegular,
		"file://fifo":                         mailbox.ErrNotRegular,
		"file://none":                         fs.ErrNotExist,
		"file://" + more + "/none":            fs.ErrNotExist,
		"file://" + strings.Repeat("x/", 9e3): unix.ENAMETOOLONG,
	} {
		if err := box.CheckRef(uri, []string{more}); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("CheckRef(%.99s) = %v; want %v", uri, err, want)
		}
	}
	if err := box.CheckRef("file://loop", nil); err == nil {
		t.Error("CheckRef(file://loop) = nil; want an error")
	}
}

// CLOWL-16.
func TestAReferencedFileIsHashed(t *testing.T) {
	box, more := open(t), t.TempDir()
	write(t, box.Path()+"/a.md", "a")
	write(t, more+"/b.md", "b")
	write(t, box.Path()+"/huge", "")
	must(t, os.Truncate(box.Path()+"/huge", mailbox.MaxRef+1))
	must(t, unix.Mkfifo(box.Path()+"/fifo", 0o600))
	must(t, os.Symlink("/etc/passwd", box.Path()+"/out"))
	for ref, want := range map[string]struct {
		sum string
		err error
	}{
		"a.md":                     {"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb", nil},
		"file://a.md":              {"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb", nil},
		more + "/b.md":             {"3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d", nil},
		"none.md":                  {"", fs.ErrNotExist},
		"https://example.org/a.md": {"", fs.ErrNotExist},
		"out":                      {"", mailbox.ErrOutside},
		"../a.md":                  {"", mailbox.ErrOutside},
		"/etc/passwd":              {"", mailbox.ErrOutside},
		"fifo":                     {"", mailbox.ErrNotRegular},
		"huge":                     {"", mailbox.ErrTooLarge},
	} {
		if sum, err := box.SumRef(ref, []string{more}); sum != want.sum || !errors.Is(err, want.err) || want.err == nil && err != nil {
			t.Errorf("SumRef(%s) = %q, %v; want %q, %v", ref, sum, err, want.sum, want.err)
		}
	}
}
