package artifact_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/stores/artifact"
	"mailboxd/internal/stores/dirtree"
	"mailboxd/internal/testtools/fault"
)

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}

func put(t *testing.T, s *artifact.Store, text string) artifact.Entry {
	t.Helper()
	e, err := s.Put(strings.NewReader(text), artifact.MaxRun)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func path(state, digest string) string {
	return filepath.Join(state, "artifacts/sha256", digest[:2], digest)
}

// asides lists what writers left.
func asides(t *testing.T, state string) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(state, "artifacts/tmp-*"))
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func TestAFileIsKeptUnderItsHashAndOnlyReadableForItsUser(t *testing.T) {
	state := t.TempDir()
	s := artifact.In(state, 0)
	e := put(t, s, "words")
	if e.Digest != sum("words") || e.Size != 5 {
		t.Errorf("Put = %+v; want the digest and the size of the bytes", e)
	}
	info, err := os.Lstat(path(state, e.Digest))
	if err != nil || info.Mode() != 0o400 {
		t.Fatalf("the artifact is %v, %v; want a file with mode 0400", info, err)
	}
	var got bytes.Buffer
	if err := s.Write(e.Digest, &got); err != nil || got.String() != "words" {
		t.Errorf("Write = %q, %v; want the words", got.String(), err)
	}
	if left := asides(t, state); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

func TestTheSameBytesOfManyWritersAreOneFile(t *testing.T) {
	state := t.TempDir()
	s, other := artifact.In(state, 0), artifact.In(state, 0)
	var putting sync.WaitGroup
	for i := range 16 {
		putting.Go(func() {
			of := s
			if i%2 == 0 {
				of = other
			}
			if _, err := of.Put(strings.NewReader("same"), artifact.MaxRun); err != nil {
				t.Error(err)
			}
		})
	}
	putting.Wait()
	n := 0
	for e, err := range s.All() {
		if n++; err != nil || e.Digest != sum("same") {
			t.Errorf("All has %+v, %v", e, err)
		}
	}
	if left := asides(t, state); n != 1 || len(left) > 0 {
		t.Errorf("%d artifacts, and %q are left; want one, and nothing", n, left)
	}
}

func TestAnArtifactThatWasChangedIsFoundAndRepaired(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"other bytes": func(path string) error { return os.WriteFile(path, []byte("other"), 0o600) },
		"cut":         func(path string) error { return os.Truncate(path, 2) },
		"grown":       func(path string) error { return os.Truncate(path, artifact.MaxFile+1) },
		"a link": func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink("/etc/passwd", path))
		},
		"a FIFO": func(path string) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) },
	} {
		state := t.TempDir()
		s := artifact.In(state, 0)
		e := put(t, s, "words")
		if err := errors.Join(os.Chmod(path(state, e.Digest), 0o600), change(path(state, e.Digest))); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Verify(e.Digest); !errors.Is(err, artifact.ErrChanged) {
			t.Errorf("%s: Verify = %v; want ErrChanged", name, err)
		}
		to := filepath.Join(state, "copy")
		if _, err := s.CopyTo(e.Digest, to, artifact.MaxRun); !errors.Is(err, artifact.ErrChanged) {
			t.Errorf("%s: CopyTo = %v; want ErrChanged", name, err)
		}
		if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: a copy is left: %v", name, err)
		}
		var out bytes.Buffer
		if err := s.Write(e.Digest, &out); err == nil || out.Len() > 0 {
			t.Errorf("%s: Write wrote %q, %v; want nothing", name, out.String(), err)
		}
		put(t, s, "words")
		if _, err := s.Verify(e.Digest); err != nil {
			t.Errorf("%s: after it was put again, Verify = %v", name, err)
		}
	}
}

func TestTheSizeIsCheckedWhileAFileIsCopied(t *testing.T) {
	zeroes := zeroReader{}
	state := t.TempDir()
	s := artifact.In(state, 0)
	over := func(e artifact.Entry, err error) {
		t.Helper()
		if _, is := errors.AsType[*artifact.LimitError](err); !is {
			t.Errorf("Put = %+v, %v; want a LimitError", e, err)
		}
	}
	over(s.Put(zeroes, 1000))
	over(artifact.In(state, 0).Put(io.LimitReader(zeroes, artifact.MaxFile+1), artifact.MaxRun))
	full := artifact.In(state, 9)
	put(t, full, "12345")
	over(full.Put(strings.NewReader("54321"), artifact.MaxRun))
	over(artifact.In(state, 9).Put(strings.NewReader("54321"), artifact.MaxRun))
	put(t, full, "12345") // what is there needs no room
	put(t, full, "1234")
	if left := asides(t, state); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { return len(p), nil }

func TestNothingIsLeftOfAFileThatCannotBeWritten(t *testing.T) {
	state := t.TempDir()
	s := artifact.In(state, 0)
	undo := fault.FailReads(func(what string) error {
		if what == "write artifact" {
			return unix.ENOSPC
		}
		return nil
	})
	_, err := s.Put(strings.NewReader("words"), artifact.MaxRun)
	undo()
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("Put = %v; want ENOSPC", err)
	}
	for e := range s.All() {
		t.Errorf("there is %+v", e)
	}
	if left := asides(t, state); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

func TestOnlyARegularFileWithoutALinkInItsPathIsTakenFromADirectory(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) { write(t, filepath.Join(dir, name)) }
	for _, name := range []string{"real", "out"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file("real/file")
	file("out/a\nb")
	file("out/secret")
	for name, to := range map[string]string{"link": "out/secret", "dir": "real", "away": "/etc/passwd", "up": "..", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600), os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s := artifact.In(t.TempDir(), 0)
	for name, want := range map[string]error{
		"real/file": nil, "out/a\nb": nil, "empty": nil, "./real/file": nil, "real//file": nil,
		"link": artifact.ErrLink, "dir/file": artifact.ErrLink, "away": artifact.ErrLink, "up/x": artifact.ErrLink, "loop": artifact.ErrLink,
		"fifo": dirtree.ErrNotRegular, "out": dirtree.ErrNotRegular, ".": dirtree.ErrNotRegular,
		"none": fs.ErrNotExist, "out/none": fs.ErrNotExist, "real/file/x": unix.ENOTDIR,
		"../x": fs.ErrPermission, "/etc/passwd": fs.ErrPermission, "": fs.ErrPermission, "out/../../x": fs.ErrPermission,
		strings.Repeat("x", 300): unix.ENAMETOOLONG,
	} {
		_, err := s.PutFile(root, name, artifact.MaxRun)
		_, unfit := errors.AsType[*artifact.FileError](err)
		if !errors.Is(err, want) || unfit != (want != nil) {
			t.Errorf("PutFile(%.40q) = %v; want %v", name, err, want)
		}
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAFileThatChangesWhileItIsCopiedIsNotKept(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	name := filepath.Join(dir, "file")
	write(t, name)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	s := artifact.In(state, 0)
	for what, change := range map[string]func() error{
		"longer":      func() error { return os.WriteFile(name, bytes.Repeat([]byte("x"), 100_000), 0o600) },
		"shorter":     func() error { return os.Truncate(name, 1) },
		"other bytes": func() error { return os.Chtimes(name, time.Now(), time.Now().Add(time.Hour)) },
	} {
		undo := fault.FailReads(func(at string) error { // after the bytes were copied, and before the last look at the file
			if at == "write artifact" {
				return change()
			}
			return nil
		})
		_, err := s.PutFile(root, "file", artifact.MaxRun)
		undo()
		if !errors.Is(err, artifact.ErrUnsettled) {
			t.Errorf("%s: PutFile = %v; want ErrUnsettled", what, err)
		}
	}
	for e := range s.All() {
		t.Errorf("there is %+v", e)
	}
}

func TestOnlyAnOldArtifactIsRemoved(t *testing.T) {
	state := t.TempDir()
	s := artifact.In(state, 0)
	e := put(t, s, "words")
	if err := s.SetNote(e.Digest, artifact.Note{Sensitivity: "confidential", Name: "x"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		before time.Time
		dry    bool
		want   bool
	}{
		{e.Changed.Add(-time.Second), false, false},
		{e.Changed.Add(time.Second), true, true},
		{e.Changed.Add(time.Second), false, true},
	} {
		if removed, err := s.Remove(e.Digest, c.before, c.dry); removed != c.want || err != nil {
			t.Errorf("Remove(%v) = %v, %v", c, removed, err)
		}
	}
	if _, err := s.Stat(e.Digest); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
	if n, found := s.Note(e.Digest); found {
		t.Errorf("its note %+v is there", n)
	}
	again := put(t, s, "words")
	if err := os.Chtimes(path(state, again.Digest), time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	put(t, s, "words") // counts as put now
	if removed, err := s.Remove(again.Digest, time.Now().Add(-time.Minute), false); removed || err != nil {
		t.Errorf("one that was put again is removed: %v, %v", removed, err)
	}
}

func TestWhatKilledWritersLeftIsSwept(t *testing.T) {
	state := t.TempDir()
	s := artifact.In(state, 0)
	put(t, s, "words")
	for _, name := range []string{"tmp-old", "tmp-new"} {
		write(t, filepath.Join(state, "artifacts", name))
	}
	if err := os.Chtimes(filepath.Join(state, "artifacts/tmp-old"), time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if left := asides(t, state); len(left) != 1 || filepath.Base(left[0]) != "tmp-new" {
		t.Errorf("%q are left; want tmp-new", left)
	}
}

func TestANoteThatCannotBeReadIsThatOfARestrictedArtifact(t *testing.T) {
	state := t.TempDir()
	s := artifact.In(state, 0)
	e := put(t, s, "words")
	if err := s.SetNote(e.Digest, artifact.Note{Sensitivity: "public"}); err != nil {
		t.Fatal(err)
	}
	if n, found := s.Note(e.Digest); !found || n.Sensitivity != "public" {
		t.Errorf("Note = %+v, %v", n, found)
	}
	write(t, filepath.Join(state, "artifacts/put", e.Digest))
	if n, found := s.Note(e.Digest); !found || n.Sensitivity != "restricted" {
		t.Errorf("Note = %+v, %v; want restricted", n, found)
	}
}

func TestADigestIsNoPath(t *testing.T) {
	s := artifact.In(t.TempDir(), 0)
	for _, digest := range []string{
		"", "x", "../../etc/passwd", strings.Repeat("A", 64), strings.Repeat("a", 63) + "/", strings.Repeat("a", 65),
	} {
		if _, err := s.Stat(digest); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Stat(%q) = %v; want that there is none", digest, err)
		}
	}
}
