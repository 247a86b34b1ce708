package bundle

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"
)

// ErrNoBundle says that a file is no bundle.
var ErrNoBundle = errors.New("is no bundle")

// maxLine limits the bytes of a line in a file of lines that is read for verifying.
const maxLine = 2 << 20

// Memory is a limit for the Go runtime of a program that verifies, which may get hostile files: all of it then has less
// than 64 MiB.
const Memory = 24 << 20

// A bundle is an open bundle. Its bytes come from outside, so each read is compared with the hash of the first one:
// the file may change meanwhile.
type bundle struct {
	file     io.ReaderAt
	entries  []entry
	manifest Manifest
}

// open reads a bundle once. Its error wraps ErrNoBundle.
func open(file io.ReaderAt, size int64) (*bundle, error) {
	b := &bundle{file: file}
	err := b.read(size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoBundle, err)
	}
	return b, nil
}

func (b *bundle) read(size int64) (err error) {
	if b.entries, err = scanTar(io.NewSectionReader(b.file, 0, size), size); err != nil {
		return err
	}
	for _, name := range []string{manifestName, statementName} {
		if b.find(name) == nil {
			return fmt.Errorf("it has no %s", name)
		}
	}
	text, err := b.small(manifestName, maxManifest)
	if err == nil {
		b.manifest, err = parseManifest(text)
	}
	return err
}

// find returns the entry with a name; nil for none.
func (b *bundle) find(name string) *entry {
	at, found := slices.BinarySearchFunc(b.entries, name, func(e entry, name string) int { return strings.Compare(e.name, name) })
	if !found {
		return nil
	}
	return &b.entries[at]
}

// small returns the bytes of a file that is not large.
func (b *bundle) small(name string, most int64) ([]byte, error) {
	e := b.find(name)
	if e == nil {
		return nil, fmt.Errorf("it has no %s", name)
	}
	if e.size > most {
		return nil, fmt.Errorf("%s has more than %d KiB", name, most>>10)
	}
	text := make([]byte, e.size)
	if _, err := b.file.ReadAt(text, e.offset); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if sha256.Sum256(text) != e.sum {
		return nil, errChanged
	}
	return text, nil
}

var errChanged = errors.New("the file changed while it was read")

// A lines reads the lines of a file in a bundle.
type lines struct {
	in   *bufio.Scanner
	sum  hash.Hash
	want [sha256.Size]byte
	name string
	n    int // of the line that next returned last
}

// lines returns the lines of a file; none if there is no such file.
func (b *bundle) lines(name string) *lines {
	l := &lines{name: name, sum: sha256.New()}
	e, from := b.find(name), io.Reader(strings.NewReader(""))
	if e == nil {
		l.want = sha256.Sum256(nil)
	} else {
		l.want, from = e.sum, io.NewSectionReader(b.file, e.offset, e.size)
	}
	l.in = bufio.NewScanner(io.TeeReader(from, l.sum))
	l.in.Buffer(make([]byte, 64<<10), maxLine)
	return l
}

// next returns the next line, which is valid until the next call; io.EOF at the end.
func (l *lines) next() ([]byte, error) {
	if l.n++; l.in.Scan() {
		return l.in.Bytes(), nil
	}
	switch err := l.in.Err(); {
	case err != nil:
		return nil, fmt.Errorf("read line %d of %s: %w", l.n, l.name, err)
	case !bytes.Equal(l.sum.Sum(nil), l.want[:]):
		return nil, errChanged
	}
	return nil, io.EOF
}

// numberOf returns which task the name of a file in one of the folders is about, and which attempt; 0 for none.
func numberOf(name, folder string) (task, attempt int) {
	rest, ok := strings.CutPrefix(name, folder+"/")
	if !ok {
		return 0, 0
	}
	first, rest, _ := strings.Cut(rest, ".")
	second, _, _ := strings.Cut(rest, ".")
	task, _ = strconv.Atoi(first) // entryName has only digits there
	attempt, _ = strconv.Atoi(second)
	return task, attempt
}

// isRedacted reports whether a file has the hash of a body instead of it.
func isRedacted(name string) bool { return strings.HasSuffix(name, ".redacted.json") }

// isBad reports whether a read failed, and not only ended.
func isBad(err error) bool { return err != nil && !errors.Is(err, io.EOF) }
