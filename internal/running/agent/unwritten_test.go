package agent_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
)

// triedAgain says of the errors of a write whether the run is tried again, for the
// machine is at fault.
var triedAgain = map[syscall.Errno]bool{
	unix.ENOSPC: true, unix.EDQUOT: true, unix.EROFS: true, unix.EIO: true, unix.EMFILE: true, unix.ENFILE: true, unix.ENOMEM: true,
	unix.EACCES: false, unix.ENOENT: false,
}

func TestARequestThatCannotBeWrittenIsTriedAgainWhereTheMachineIsAtFault(t *testing.T) {
	for errno, again := range triedAgain {
		failing(t, "write request.json", errno)
		got := outcome(t, playing(t, "hang"))
		if (got.Void != nil) != again || !again && (got.Result.Status != envelope.Rejected || got.Result.Error.Kind != envelope.InternalError) {
			t.Errorf("%v: void: %v, got %q, %+v; want that it is tried again: %v", errno, got.Void, got.Result.Status, got.Result.Error, again)
		}
	}
}

func TestOutputFilesThatCannotBeMadeAreTriedAgainWhereTheMachineIsAtFault(t *testing.T) {
	for _, write := range []string{"create stdout", "create stderr"} {
		for errno, again := range triedAgain {
			failing(t, write, errno)
			j := jobFor(t, request(""))
			got := bound(t, playing(t, "hang")).Run(t.Context(), j, nil)
			if (got.Void != nil) != again {
				t.Errorf("%s: %v: void: %v; want that the run has not begun: %v", write, errno, got.Void, again)
			}
			if r := got.Result; !again && (r.Status != envelope.Rejected || r.Error.Kind != envelope.SpawnFailed || !got.Retry) {
				t.Errorf("%s: %v: got %q, %+v, retry %v; want rejected, %s, true", write, errno, r.Status, r.Error, got.Retry, envelope.SpawnFailed)
			}
			if _, err := os.Lstat(filepath.Join(j.Dir, "stdout")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v: stdout is there: %v", write, errno, err)
			}
		}
	}
}

func TestAnAnswerCountsWhenExitJSONCannotBeWritten(t *testing.T) {
	for _, errno := range []syscall.Errno{unix.ENOSPC, unix.EIO, unix.EACCES} {
		met := failing(t, "write exit.json", errno)
		got := outcome(t, printing(t, goodAnswer, 0))
		if !*met {
			t.Errorf("%v: exit.json was not written", errno)
		}
		expect(t, errno.Error(), got, envelope.OK, "")
	}
}
