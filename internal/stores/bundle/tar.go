package bundle

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"
)

// The limits of a bundle. They hold for writing, too, so that what is written can be verified.
const (
	maxEntry   = 64 << 20 // bytes of one file in it
	maxTotal   = 4 << 30  // bytes of the bundle
	maxEntries = 20_000   // files in it, and tasks
	block      = 512      // bytes of a header, to a multiple of which each file is filled up
)

// entryName matches the names of all files of a bundle. They never leave a directory.
var entryName = regexp.MustCompile(`^(manifest\.json|statement\.dsse\.json|(approvals|events|messages|seals|keys)\.jsonl` +
	`|(requests|results)/[0-9]{6}(\.redacted)?\.json|patches/[0-9]{6}\.[0-9]{1,9}(\.redacted\.json|\.patch))$`)

// An entry is one file of a bundle.
type entry struct {
	name   string
	size   int64
	time   int64 // seconds since 1970
	sum    [sha256.Size]byte
	offset int64 // of its bytes: in the spool while a bundle is written, and in the bundle afterwards
}

// digest returns the SHA-256 of the entry in hexadecimal.
func (e entry) digest() string { return hex.EncodeToString(e.sum[:]) }

// header returns the block before the bytes of an entry: the same bytes for the same name, size and time.
func (e entry) header() ([]byte, error) {
	var b bytes.Buffer
	err := tar.NewWriter(&b).WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: e.name, Size: e.size, Mode: 0o644, ModTime: time.Unix(e.time, 0), Format: tar.FormatUSTAR,
	})
	return b.Bytes(), err
}

// padding returns how many zero bytes follow the bytes of the entry.
func (e entry) padding() int { return int(-e.size & (block - 1)) }

// writeTar writes entries, which are in the order of their names, with their bytes from a spool.
func writeTar(w io.Writer, entries []entry, spool io.ReaderAt) error {
	if len(entries) > maxEntries {
		return fmt.Errorf("the run has %d files, more than the %d of a bundle", len(entries), maxEntries)
	}
	total := int64(2 * block)
	for _, e := range entries {
		if total += block + e.size + int64(e.padding()); total > maxTotal {
			return fmt.Errorf("the run has more than the %d GiB of a bundle", maxTotal>>30)
		}
		head, err := e.header()
		if err == nil {
			_, err = w.Write(head)
		}
		if err == nil {
			_, err = io.Copy(w, io.NewSectionReader(spool, e.offset, e.size))
		}
		if err == nil {
			_, err = w.Write(make([]byte, e.padding()))
		}
		if err != nil {
			return err
		}
	}
	_, err := w.Write(make([]byte, 2*block))
	return err
}

// scanTar reads a whole tar, and returns its entries with their hashes. It accepts exactly what writeTar writes:
// each byte outside of the files follows from names, sizes and times. So there are no links, no sparse files, no
// extensions, no name twice, and nothing behind the end.
func scanTar(file io.Reader, size int64) ([]entry, error) {
	if size > maxTotal {
		return nil, fmt.Errorf("it has more than %d GiB", maxTotal>>30)
	}
	s := scanner{in: bufio.NewReaderSize(file, 64<<10), left: size, copied: make([]byte, 64<<10)}
	var all []entry
	for {
		e, more, err := s.next()
		if err != nil {
			return nil, fmt.Errorf("file %d in it: %w", len(all)+1, err)
		}
		if !more {
			return all, nil
		}
		switch n := len(all); {
		case n == maxEntries:
			return nil, fmt.Errorf("it has more than %d files", maxEntries)
		case n > 0 && e.name <= all[n-1].name:
			return nil, fmt.Errorf("%q comes after %q", e.name, all[n-1].name)
		}
		all = append(all, e)
	}
}

// A scanner reads one entry after the other.
type scanner struct {
	in     *bufio.Reader
	at     int64
	left   int64 // bytes of the file
	copied []byte
}

var zeros [2 * block]byte

func (s *scanner) read(p []byte) error {
	n, err := io.ReadFull(s.in, p)
	s.at, s.left = s.at+int64(n), s.left-int64(n)
	return err
}

// next reads an entry, or the end, after which there is nothing.
func (s *scanner) next() (e entry, more bool, err error) {
	var head [block]byte
	if err := s.read(head[:]); err != nil {
		return e, false, err
	}
	if head == [block]byte(zeros[:block]) {
		rest, err := io.ReadAll(io.LimitReader(s.in, block+1))
		if err == nil && !bytes.Equal(rest, zeros[:block]) {
			err = errors.New("it does not end with two empty blocks")
		}
		return e, false, err
	}
	if e, err = parseHeader(head[:]); err != nil {
		return e, false, err
	}
	if e.size > s.left {
		return e, false, io.ErrUnexpectedEOF
	}
	e.offset = s.at
	sum := sha256.New()
	n, err := io.CopyBuffer(sum, onlyReader{io.LimitReader(s.in, e.size)}, s.copied)
	s.at, s.left = s.at+n, s.left-n
	if err == nil && n < e.size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return e, false, err
	}
	sum.Sum(e.sum[:0])
	fill := head[:e.padding()]
	if err := s.read(fill); err != nil {
		return e, false, err
	}
	if !bytes.Equal(fill, zeros[:len(fill)]) {
		return e, false, errors.New("there are bytes between two files")
	}
	return e, true, nil
}

// onlyReader hides what else a reader can do, so that io.CopyBuffer uses the buffer.
type onlyReader struct{ io.Reader }

// parseHeader reads a header, and refuses each that header would not write.
func parseHeader(head []byte) (entry, error) {
	h, err := tar.NewReader(bytes.NewReader(head)).Next()
	if err != nil {
		return entry{}, errors.New("it has no header of a plain file")
	}
	e := entry{name: h.Name, size: h.Size, time: h.ModTime.Unix()}
	switch {
	case !entryName.MatchString(e.name):
		return entry{}, fmt.Errorf("no file of a bundle has the name %.200q", e.name)
	case e.size < 0 || e.size > maxEntry:
		return entry{}, fmt.Errorf("%s has %d bytes, more than %d MiB", e.name, e.size, maxEntry>>20)
	}
	if want, err := e.header(); err != nil || !bytes.Equal(want, head) {
		return entry{}, fmt.Errorf("the header of %s is not one that mailboxd writes", e.name)
	}
	return e, nil
}
