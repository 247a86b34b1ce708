package api_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/access/api"
)

// openPty returns both ends of a pseudo-terminal: the person's and the program's.
func openPty(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// startAt starts a process that waits, with a controlling terminal or, for nil, without one.
func startAt(t *testing.T, terminal *os.File) *os.Process {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if terminal != nil {
		cmd.Stdin = terminal
		cmd.SysProcAttr.Setctty = true
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process
}

// typeNumber reads the question at a terminal and types what reply returns for the number in it.
func typeNumber(person *os.File, reply func(number string) string) (question string) {
	_ = person.SetReadDeadline(time.Now().Add(2 * time.Minute)) // a question that never comes must not hold the test
	lines := bufio.NewReader(person)
	for {
		text, err := lines.ReadString(' ')
		question += text
		if err != nil {
			return question
		}
		if _, number, found := strings.Cut(question, "Type "); found && strings.HasSuffix(number, " ") {
			fmt.Fprintln(person, reply(strings.TrimSpace(number)))
			return question
		}
	}
}

func TestADecisionIsConfirmedByTheNumberThatTheTerminalShows(t *testing.T) {
	person, program := openPty(t)
	asker := startAt(t, program)
	for name, c := range map[string]struct {
		reply func(string) string
		want  string
	}{
		"the number":     {func(n string) string { return n }, ""},
		"another number": {func(n string) string { return n + "0" }, "another number was typed"},
		"nothing":        {func(string) string { return "" }, "another number was typed"},
		"yes":            {func(string) string { return "yes" }, "another number was typed"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 1)
			var typing sync.WaitGroup
			typing.Go(func() { asked <- typeNumber(person, c.reply) })
			terminal, err := api.ConfirmAtTerminal(t.Context(), asker, "approve t1?\x1b[2J", "")
			typing.Wait()
			if question := <-asked; !strings.Contains(question, "approve t1?") || strings.Contains(question, "\x1b[2J") {
				t.Errorf("the terminal shows %q; want the question, its control characters escaped", question)
			}
			if c.want == "" && (err != nil || terminal != program.Name()) {
				t.Errorf("ConfirmAtTerminal = %q, %v; want %q, nil", terminal, err, program.Name())
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("ConfirmAtTerminal = %v; want %q", err, c.want)
			}
		})
	}
}

func TestWhatWasTypedBeforeTheQuestionIsNoAnswer(t *testing.T) {
	person, program := openPty(t)
	asker := startAt(t, program)
	for n := 1000; n < 1200; n++ { // a program that guesses ahead
		fmt.Fprintf(person, "%d\n", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := api.ConfirmAtTerminal(ctx, asker, "approve t1?", ""); err == nil || !strings.Contains(err.Error(), "nobody typed the number") {
		t.Errorf("ConfirmAtTerminal = %v; want that nobody typed the number", err)
	}
}

func TestAProcessWithoutATerminalConfirmsNothing(t *testing.T) {
	if _, err := api.ConfirmAtTerminal(t.Context(), startAt(t, nil), "approve t1?", ""); err == nil || !strings.Contains(err.Error(), "it has no terminal") {
		t.Errorf("ConfirmAtTerminal = %v; want that it has no terminal", err)
	}
}
