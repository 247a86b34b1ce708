package bundle

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"mailboxd/internal/testtools/fault"
)

// A spool keeps the files of a bundle on disk until all of them, and so the manifest, are known. Its file has no name.
type spool struct {
	file    *os.File
	entries []entry
	at      int64
}

func newSpool(dir string) (*spool, error) {
	file, err := os.CreateTemp(dir, temporary)
	if err != nil {
		return nil, err
	}
	return &spool{file: file}, os.Remove(file.Name())
}

// temporary is the name of a file that is being written.
const temporary = ".mailboxd-export-*"

// add adds a file with the bytes that write writes. A file without bytes is left out.
func (s *spool) add(name string, at time.Time, write func(io.Writer) error) error {
	e := entry{name: name, time: max(0, at.Unix()), offset: s.at}
	sum := sha256.New()
	out := bufio.NewWriterSize(&limited{to: io.MultiWriter(s.file, sum), left: maxEntry}, 64<<10)
	if err := errors.Join(write(out), out.Flush()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	end, err := s.file.Seek(0, io.SeekCurrent)
	if e.size = end - s.at; err != nil || e.size == 0 {
		return err
	}
	s.at = end
	sum.Sum(e.sum[:0])
	s.entries = append(s.entries, e)
	return nil
}

// addBytes adds a file.
func (s *spool) addBytes(name string, at time.Time, text []byte) error {
	return s.add(name, at, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// addLines adds a file with a line of JSON for each value.
func addLines[T any](s *spool, name string, at time.Time, values []T) error {
	return s.add(name, at, func(w io.Writer) error {
		for _, v := range values {
			line, err := encode(v)
			if err == nil && len(line) > maxLine && name != messagesName { // they are never read again
				err = fmt.Errorf("a line has more than %d MiB", maxLine>>20)
			}
			if err == nil {
				_, err = w.Write(line)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// limited is a writer with a limit.
type limited struct {
	to   io.Writer
	left int
}

// Write writes p, unless it is more than is left.
func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, fmt.Errorf("it has more than %d MiB", maxEntry>>20)
	}
	return l.to.Write(p)
}

// linkTo writes the bundle to a path where there is no file. The file is whole and on disk before it has that name.
func (s *spool) linkTo(ctx context.Context, path string) (size int64, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	defer file.Close()
	out := bufio.NewWriterSize(&cancellable{ctx, file}, 64<<10)
	if err = writeTar(out, s.entries, s.file); err == nil {
		err = out.Flush()
	}
	if err == nil {
		size, err = file.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return 0, err
	}
	fault.Point("export-written")
	if err := os.Link(file.Name(), path); err != nil {
		return 0, err
	}
	fault.Point("export-placed")
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	return size, dir.Sync()
}

// cancellable is a writer that fails when its context ends.
type cancellable struct {
	ctx context.Context
	to  io.Writer
}

// Write writes p unless the context has ended.
func (c *cancellable) Write(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	return c.to.Write(p)
}

// addBody adds a body, or its hash instead.
func (s *spool) addBody(name, extension string, at time.Time, body []byte, leaveOut bool) error {
	if !leaveOut {
		return s.addBytes(name+extension, at, body)
	}
	text, err := encode(redacted{hexOf(sha256.Sum256(body)), len(body)})
	if err != nil {
		return err
	}
	return s.addBytes(name+".redacted.json", at, text)
}

// base returns the name of a file of a task by its number.
func base(folder string, number int, attempt ...int) string {
	name := fmt.Sprintf("%s/%06d", folder, number)
	for _, n := range attempt {
		name += fmt.Sprintf(".%d", n)
	}
	return name
}
