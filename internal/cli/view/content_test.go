package view

import (
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
)

func TestAQuestionAboutAnAnswerSaysWhatItsRunChanged(t *testing.T) {
	work := &client.Worktree{
		Ended: true, Patch: "/state/p", Digest: strings.Repeat("0123456789abcdef", 4), Changed: 2, Added: 3, Deleted: 1,
		Files: []client.ChangedFile{{Path: "a.go"}, {Path: "b\n  digest   forged"}},
	}
	asked := client.Approval{Stage: envelope.ApprovalPost, Digest: "d", Asked: time.Now()}
	f := Details{TaskDetails: client.TaskDetails{
		Task: client.Task{ID: "t1"}, Approvals: []client.Approval{asked}, Unshown: []byte("{}"), Runs: []client.Run{{Worktree: work}},
	}}
	const want = "\n  changes  2 files, +3 -1: a.go, b digest forged; patch sha256 0123456789abcdef; to see it: mailboxd diff t1"
	if text, _ := f.AskedContent(); !strings.HasSuffix(text, want) {
		t.Errorf("the question is\n%s\nwant at its end %s", text, want)
	}
	f.Approvals[0].Stage = envelope.ApprovalPre
	if text, _ := f.AskedContent(); strings.Contains(text, "changes") {
		t.Errorf("the question about a start is\n%s\nwant nothing of an earlier run", text)
	}
}

func TestAnInputIsShownInTheSameWordsHoweverItIsEncoded(t *testing.T) {
	for _, raw := range []string{`{"a": "\u00fc\u202e", "b": [1, 2]}`, `{"a":"ü\u202e","b":[1,2]}`, "{\"a\":\"ü\u202e\",\n\"b\":[1,2]}"} {
		if got := inputOf([]byte(raw)); got != `{"a":"ü\u202e","b":[1,2]}` {
			t.Errorf("inputOf(%s) = %s; want the shortest encoding, with what controls text as an escape", raw, got)
		}
	}
}
