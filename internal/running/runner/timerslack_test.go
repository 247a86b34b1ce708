package runner

import (
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAProcessIsStartedWithTimerSlack(t *testing.T) {
	const chosen = 123 * time.Microsecond // by a user
	for _, test := range []struct{ has, given, want time.Duration }{
		{usualSlack, keeperSlack, keeperSlack},
		{keeperSlack, usualSlack, usualSlack},
		{chosen, keeperSlack, chosen},
	} {
		runtime.LockOSThread()
		before, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		setSlack(t, test.has)
		var out strings.Builder
		cmd := exec.Command("cat", "/proc/self/timerslack_ns")
		cmd.Stdout = &out
		if err == nil {
			err = withSlack(test.given, cmd.Start)
		}
		if err != nil {
			t.Fatal(err)
		}
		after, _ := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		setSlack(t, time.Duration(before))
		runtime.UnlockOSThread()
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.TrimSpace(out.String()), strconv.FormatInt(test.want.Nanoseconds(), 10); got != want {
			t.Errorf("a process that is given %v has %s ns; want %s", test.given, got, want)
		}
		if time.Duration(after) != test.has {
			t.Errorf("the thread has %v after it; want %v", time.Duration(after), test.has)
		}
	}
}

// setSlack sets the timer slack of the thread.
func setSlack(t *testing.T, slack time.Duration) {
	t.Helper()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0); err != nil {
		t.Skip(err)
	}
}
