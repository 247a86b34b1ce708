package slack_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/slack"
)

// play is, in the environment, what the test binary does instead of testing.
const play = "SLACK_TEST_PLAY"

func TestMain(m *testing.M) {
	switch os.Getenv(play) {
	case "relax":
		slack.Relax()
		fallthrough
	case "tell":
		f, err := os.Open("/proc/self/timerslack_ns")
		if err != nil {
			panic(err)
		}
		io.Copy(os.Stdout, f)
		fmt.Println(os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

// told runs the test binary, which tells its slack and its arguments.
func told(t *testing.T, what string, start func(*exec.Cmd) error) string {
	t.Helper()
	var said strings.Builder
	cmd := exec.Command("/proc/self/exe", "a", "b c")
	cmd.Env, cmd.Stdout = append(os.Environ(), play+"="+what), &said
	if err := start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return said.String()
}

func saying(d time.Duration) string { return fmt.Sprintf("%d\n[a b c]\n", d.Nanoseconds()) }

// having gives a start the slack that somebody else has chosen.
func having(d time.Duration, start func() error) error {
	runtime.LockOSThread() // and never unlocked: the thread is of no use any more
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(d), 0, 0, 0); err != nil {
		return err
	}
	return start()
}

func TestAProcessHasTheSlackItIsGiven(t *testing.T) {
	for _, want := range []time.Duration{slack.Keeper, slack.Usual} {
		got := told(t, "tell", func(cmd *exec.Cmd) error {
			return having(slack.Daemon, func() error { return slack.Start(want, cmd.Start) })
		})
		if got != saying(want) {
			t.Errorf("a process that was given %v says %q", want, got)
		}
	}
}

func TestADaemonIsTheSameProgramWithMoreSlack(t *testing.T) {
	got := told(t, "relax", func(cmd *exec.Cmd) error {
		return having(slack.Usual, cmd.Start)
	})
	if got != saying(slack.Daemon) {
		t.Errorf("a process that relaxes says %q; want %q", got, saying(slack.Daemon))
	}
}

func TestASlackThatSomebodyChoseIsLeftAlone(t *testing.T) {
	const theirs = 123 * time.Microsecond
	for _, what := range []string{"tell", "relax"} {
		got := told(t, what, func(cmd *exec.Cmd) error {
			return having(theirs, func() error { return slack.Start(slack.Keeper, cmd.Start) })
		})
		if got != saying(theirs) {
			t.Errorf("%s: a process with the slack of %v says %q", what, theirs, got)
		}
	}
}
