package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// typeConfirmed runs a command with a controlling terminal of its own, and types there the
// number that it shows, or another one: typing right|wrong COMMAND... With late, a line of the
// file late arrives while the command asks about its last argument, and the answer is yes. With
// "!", the command fails. The question and what the command prints are the standard output of the
// script.
func typeConfirmed(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || !slices.Contains([]string{"right", "wrong", "late"}, args[0]) {
		ts.Fatalf("usage: typing right|wrong|late command [args]")
	}
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	ts.Check(err)
	defer person.Close()
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	ts.Check(err)
	ts.Check(unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	ts.Check(err)
	var said bytes.Buffer
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), terminal, &said, &said
	cmd.Env = append(os.Environ(), "AINL_AGENT_ROOT="+ts.Getenv("AINL_AGENT_ROOT"), "XDG_STATE_HOME="+ts.Getenv("XDG_STATE_HOME"), "XDG_RUNTIME_DIR="+ts.Getenv("XDG_RUNTIME_DIR"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	terminal.Close() // the command alone has it now, so that its end is seen
	ts.Check(err)
	ts.Check(person.SetReadDeadline(time.Now().Add(2 * time.Minute))) // a question that never comes must not hold the test
	question, lines := "", bufio.NewReader(person)
	for err == nil && !strings.Contains(question, "to confirm: ") && !strings.HasSuffix(question, "[y/N] ") {
		var word string
		word, err = lines.ReadString(' ')
		question += word
	}
	if _, after, found := strings.Cut(question, "Type "); found {
		if args[0] == "right" {
			after, _, _ = strings.Cut(after, " ")
		} else {
			after = "no"
		}
		fmt.Fprintln(person, after)
	}
	if args[0] == "late" {
		appendTo(ts, taskFile, ts.ReadFile("late"))
		awaitRevision(ts, args[len(args)-1])
		fmt.Fprintln(person, "y")
	}
	err = cmd.Wait()
	ts.Logf("%s\n%s", question, said.String())
	_, _ = ts.Stdout().Write(append([]byte(strings.ReplaceAll(question, "\r\n", "\n")), said.Bytes()...))
	if (err != nil) != neg {
		ts.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
}

// awaitRevision waits until a task has a second revision.
func awaitRevision(ts *testscript.TestScript, id string) {
	awaitSuccess(ts, false, []string{"sh", "-c", "mailboxd show " + id + " | grep -q 'revision 2'"})
}
