package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A tally watches the files that appear in a directory.
type tally struct {
	fd     int
	buffer []byte
	seen   map[string]bool
}

// The ways in which a complete file can become visible.
const (
	placed  = unix.IN_CREATE | unix.IN_MOVED_TO // linked or renamed
	written = unix.IN_CLOSE_WRITE               // written in place
)

func newTally(dir string, how uint32) (*tally, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	if _, err := unix.InotifyAddWatch(fd, dir, how|unix.IN_ONLYDIR); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("watch %s: %w", dir, err)
	}
	return &tally{fd: fd, buffer: make([]byte, 1<<20), seen: map[string]bool{}}, nil
}

func (t *tally) close() { unix.Close(t.fd) }

// next blocks until files have appeared. It returns their names without .json, and when the
// events were read.
func (t *tally) next(ctx context.Context) (ids []string, at time.Time, err error) {
	for len(ids) == 0 {
		if err := t.readable(ctx); err != nil {
			return nil, at, err
		}
		n, err := unix.Read(t.fd, t.buffer)
		at = time.Now()
		if err != nil && !errors.Is(err, unix.EINTR) {
			return nil, at, fmt.Errorf("read events: %w", err)
		}
		if ids, err = t.names(t.buffer[:max(n, 0)]); err != nil {
			return nil, at, err
		}
	}
	return ids, at, nil
}

// readable blocks until there are events.
func (t *tally) readable(ctx context.Context) error {
	for {
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("%w with %d result files", err, len(t.seen))
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLIN}}, 100)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for events: %w", err)
		}
		if n > 0 {
			return nil
		}
	}
}

// names returns the files in events that did not appear before.
func (t *tally) names(events []byte) (ids []string, err error) {
	for len(events) >= unix.SizeofInotifyEvent {
		mask := binary.NativeEndian.Uint32(events[4:])
		length := int(binary.NativeEndian.Uint32(events[12:]))
		name := string(events[unix.SizeofInotifyEvent : unix.SizeofInotifyEvent+length])
		events = events[unix.SizeofInotifyEvent+length:]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			return nil, errors.New("more result files appeared at once than the system counts")
		}
		name = strings.TrimSuffix(strings.TrimRight(name, "\x00"), ".json")
		if strings.HasPrefix(name, "task-") && !t.seen[name] {
			t.seen[name] = true
			ids = append(ids, name)
		}
	}
	return ids, nil
}

// pause is the interval of reads while only the number counts, to leave the processors to the
// measured programs.
const pause = 2 * time.Millisecond

// all blocks until count files have appeared.
func (t *tally) all(ctx context.Context, count int) error {
	for len(t.seen) < count {
		if _, _, err := t.next(ctx); err != nil {
			return fmt.Errorf("wait for %d: %w", count, err)
		}
		time.Sleep(pause)
	}
	return nil
}
