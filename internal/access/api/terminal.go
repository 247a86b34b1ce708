package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/cli/term"
)

// promptTime is how long a person may take to type the number.
const promptTime = time.Minute

// confirmAtTerminal asks for a number at the controlling terminal of a peer, and reads it from
// there. The terminal shows the number, unless the caller shows one of its own somewhere else.
// A program that only has the connection can't answer: the answer never comes over the socket.
// It returns the path of the terminal.
func confirmAtTerminal(ctx context.Context, p peer, question, shown string) (string, error) {
	want, how, err := numberToType(shown)
	if err != nil {
		return "", err
	}
	terminal, err := openTerminal(p)
	if err != nil {
		return "", err
	}
	defer func() { _ = terminal.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = terminal.SetDeadline(time.Now()) })
	defer stop()
	if err := terminal.SetDeadline(time.Now().Add(promptTime)); err != nil {
		return "", fmt.Errorf("ask at %s: %w", terminal.Name(), err)
	}
	if err := flushInput(terminal); err != nil { // what was typed before the question isn't an answer
		return "", fmt.Errorf("ask at %s: %w", terminal.Name(), err)
	}
	lines := strings.ReplaceAll(term.Escape(question), "\n", "\r\n")
	if _, err := fmt.Fprintf(terminal, "\r\n%s\r\nType %s to confirm: ", lines, how); err != nil {
		return "", fmt.Errorf("ask at %s: %w", terminal.Name(), err)
	}
	answer := make([]byte, 64)
	n, err := terminal.Read(answer) // a terminal gives a line at a time
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", fmt.Errorf("nobody typed the number at %s within %s", terminal.Name(), promptTime)
	case err != nil:
		return "", fmt.Errorf("read the number at %s: %w", terminal.Name(), err)
	case string(bytes.TrimSpace(answer[:n])) != want:
		return "", fmt.Errorf("another number was typed at %s", terminal.Name())
	}
	return terminal.Name(), nil
}

// numberToType returns the number that a person has to type, and how the terminal asks for it.
func numberToType(shown string) (want, how string, err error) {
	if shown != "" {
		if len(shown) != 2 || strings.Trim(shown, "0123456789") != "" {
			return "", "", bad("number: must be two digits")
		}
		return shown, "the number that the page shows", nil
	}
	number, err := rand.Int(rand.Reader, big.NewInt(9000))
	if err != nil {
		return "", "", err
	}
	want = strconv.Itoa(1000 + int(number.Int64()))
	return want, want, nil
}

func flushInput(terminal *os.File) error {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH) })
	return errors.Join(err, failed)
}

// openTerminal opens the controlling terminal of a peer, which the kernel names.
func openTerminal(p peer) (*os.File, error) {
	number, err := terminalOf(p.pid)
	if err != nil {
		return nil, err
	}
	if number == 0 {
		return nil, errors.New("it has no terminal: run the command in one")
	}
	path, err := terminalPath(number)
	if err != nil {
		return nil, err
	}
	terminal, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("the daemon can't open %s, which belongs to another user: prove the decision with an SSH key", path)
	}
	if err != nil {
		return nil, fmt.Errorf("open the terminal: %w", err)
	}
	info, err := terminal.Stat()
	if err == nil && !p.alive() { // after looking: its number was its own all the time
		err = errors.New("the process that asked is gone")
	}
	if err == nil {
		if stat := info.Sys().(*syscall.Stat_t); stat.Rdev != number || int(stat.Uid) != p.uid {
			err = fmt.Errorf("%s is not the terminal of the process that asked", path)
		}
	}
	if err != nil {
		return nil, errors.Join(err, terminal.Close())
	}
	return terminal, nil
}

// terminalOf returns the device of the controlling terminal of a process, field 7 of proc(5)'s
// stat; 0 for none.
func terminalOf(pid int) (uint64, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("look up the terminal: %w", err)
	}
	_, after, found := strings.Cut(string(text[max(0, bytes.LastIndexByte(text, ')')):]), ")") // a name may hold anything
	fields := strings.Fields(after)
	if !found || len(fields) < 5 {
		return 0, fmt.Errorf("look up the terminal: /proc/%d/stat is incomplete", pid)
	}
	number, err := strconv.ParseInt(fields[4], 10, 32)
	if err != nil {
		return 0, fmt.Errorf("look up the terminal: %w", err)
	}
	return uint64(uint32(number)), nil
}

// terminalPath returns where the device of a terminal is (Linux devices.txt: pseudo-terminals are
// majors 136 to 143, consoles major 4).
func terminalPath(device uint64) (string, error) {
	major, minor := unix.Major(device), unix.Minor(device)
	switch {
	case major >= 136 && major <= 143:
		return fmt.Sprintf("/dev/pts/%d", minor+(major-136)*256), nil
	case major == 4:
		return fmt.Sprintf("/dev/tty%d", minor), nil
	}
	return "", fmt.Errorf("its terminal, device %d:%d, is of a kind that can't be asked", major, minor)
}
