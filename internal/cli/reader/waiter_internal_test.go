package reader

import (
	"bytes"
	"testing"

	"mailboxd/internal/cli/exit"
)

func TestATaskThatWaitsForAPersonIsWaitedForOnlyIfAPersonAttends(t *testing.T) {
	for _, c := range []struct {
		attended, needsPerson bool
		code                  int
		said                  string
	}{
		{true, true, 0, "the task waits\n"},
		{true, false, 0, "the task waits\n"},
		{false, false, 0, "the task waits\n"},
		{false, true, exit.NeedsPerson, ""}, // the error says it
	} {
		var said bytes.Buffer
		err := Waiter{Err: &said, Attended: c.attended}.held(HeldNote{Text: "the task waits", NeedsPerson: c.needsPerson})
		if exit.CodeOf(err) != c.code || said.String() != c.said {
			t.Errorf("attended %t, needs a person %t: %v, printed %q; want code %d, %q", c.attended, c.needsPerson, err, said.String(), c.code, c.said)
		}
	}
}
