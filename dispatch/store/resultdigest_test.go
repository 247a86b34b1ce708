package store

import (
	"testing"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

const sumOfX = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"

func setsResult(kind task.Kind) core.Event {
	return core.Event{Task: 1, Kind: kind, Change: &core.Moved{Change: task.Change{Result: []byte("x")}}}
}

func TestAnEventOfEachNewResultHasItsDigest(t *testing.T) {
	shown := core.Event{Task: 1, Kind: task.KindApprovalDenied}
	other := core.Event{Task: 2, Kind: task.KindTaskHeld}
	for name, c := range map[string]struct {
		events []core.Event
		at     int
	}{
		"the event that sets it":              {[]core.Event{shown, setsResult(task.KindTaskFinished), shown}, 1},
		"the event before, if it isn't shown": {[]core.Event{shown, setsResult(""), other}, 0},
		"the event after, if it isn't shown":  {[]core.Event{setsResult(""), other, shown}, 2},
	} {
		got := resultDigests(c.events)
		if len(got) != 1 || got[c.at] != sumOfX {
			t.Errorf("%s: resultDigests = %v, want %s at %d", name, got, sumOfX, c.at)
		}
	}
	if got := resultDigests([]core.Event{shown, other}); got != nil {
		t.Errorf("resultDigests without a result = %v, want nil", got)
	}
}

func TestADigestIsAddedToTheDataOfAnEvent(t *testing.T) {
	for data, want := range map[string]string{
		"":                `{"result_sha256":"ab"}`,
		"{}":              `{"result_sha256":"ab"}`,
		`{"status":"ok"}`: `{"status":"ok","result_sha256":"ab"}`,
	} {
		if got := string(withResult(task.Event{Data: []byte(data)}, "ab").Data); got != want {
			t.Errorf("withResult(%s) = %s, want %s", data, got, want)
		}
	}
	if got := withResult(task.Event{}, ""); got.Data != nil {
		t.Errorf("withResult without a digest changes the data to %s", got.Data)
	}
}
