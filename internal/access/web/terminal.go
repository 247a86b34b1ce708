package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/cli/exit"
)

// A Terminal is the controlling terminal of the process: links are printed there, and the daemon
// asks there for the numbers of decisions.
type Terminal struct {
	file *os.File

	reading sync.Mutex // held while lines are read, and while the daemon asks
}

// OpenTerminal opens the controlling terminal of this process.
func OpenTerminal() (*Terminal, error) {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, exit.With(exit.Usage, "the page needs a terminal, to print its link and to ask about approvals: run the command in one (%w)", err)
	}
	return &Terminal{file: file}, nil
}

// Close closes the terminal.
func (t *Terminal) Close() error { return t.file.Close() }

// Print prints text. A terminal that is gone ends Listen.
func (t *Terminal) Print(text string) { _, _ = io.WriteString(t.file, text) }

// Listen calls enter for each line that is typed, until ctx ends or the terminal is gone.
func (t *Terminal) Listen(ctx context.Context, enter func()) error {
	stop := context.AfterFunc(ctx, func() { _ = t.file.SetReadDeadline(time.Now()) })
	defer stop()
	line := make([]byte, 256)
	for ctx.Err() == nil {
		n, err := t.read(ctx, line)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
		case err != nil || n == 0:
			return nil // the end of the terminal, or Ctrl-D
		default:
			enter()
		}
	}
	return nil
}

// read reads a line, unless ctx has ended or the daemon asks.
func (t *Terminal) read(ctx context.Context, line []byte) (int, error) {
	t.reading.Lock()
	defer t.reading.Unlock()
	if ctx.Err() != nil { // Quietly may have taken the deadline back
		return 0, os.ErrDeadlineExceeded
	}
	return t.file.Read(line)
}

// Quietly calls do while nobody reads at the terminal but the daemon.
func (t *Terminal) Quietly(do func()) {
	_ = t.file.SetReadDeadline(time.Now()) // Listen lets go
	t.reading.Lock()
	defer t.reading.Unlock()
	do()
	_ = t.file.SetReadDeadline(time.Time{})
}

// confirm asks for the number that the page shows, inside Quietly. What was typed before the
// question isn't an answer.
func (t *Terminal) confirm(ctx context.Context, question, number string) error {
	stop := context.AfterFunc(ctx, func() { _ = t.file.SetReadDeadline(time.Now()) })
	defer stop()
	if err := errors.Join(t.file.SetReadDeadline(time.Now().Add(typingTime)), t.flush()); err != nil {
		return fmt.Errorf("ask at the terminal: %w", err)
	}
	t.Print("\r\n" + question + "\r\nType the number that the page shows to confirm: ")
	answer := make([]byte, 64)
	n, err := t.file.Read(answer) // a terminal gives a line at a time
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("nobody typed the number at the terminal within %s", typingTime)
	case err != nil:
		return fmt.Errorf("read the number at the terminal: %w", err)
	case string(bytes.TrimSpace(answer[:n])) != number:
		return errors.New("another number was typed at the terminal")
	}
	return nil
}

// flush drops what was typed and not read.
func (t *Terminal) flush() error {
	raw, err := t.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH) })
	return errors.Join(err, failed)
}
