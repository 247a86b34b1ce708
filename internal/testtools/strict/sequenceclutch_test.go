package strict_test

import (
	"fmt"
	"strings"
	"testing"

	"mailboxd/internal/testtools/strict"
)

// clutchSent is what ann sent: two requests, the second in two versions, and a chat.message.
var clutchSent = []string{
	`{"v":"clutch/0.1","id":"r1","type":"task.request","task_id":"T1","from":{"agent_id":"agent:ann"}}`,
	`{"v":"clutch/0.1","id":"r1","type":"task.request","task_id":"T1","from":{"agent_id":"agent:ann"}}`,
	`{"v":"clutch/0.1","id":"r2","type":"task.request","task_id":"T2","from":{"agent_id":"agent:ann"}}`,
	`{"v":"clutch/0.1","id":"r3","type":"task.request","task_id":"T2","from":{"agent_id":"agent:ann"}}`,
	`{"v":"clutch/0.1","id":"c1","type":"chat.message","task_id":"T8","from":{"agent_id":"agent:ann"}}`,
	`{"v":"clutch/0.1","id":"k1","type":"tool.call","task_id":"T8","from":{"agent_id":"agent:ann"}}`,
	`{"v":"clutch/0.1","id":"r9","type":"task.request","task_id":"a/b","from":{"agent_id":"agent:ann"}}`,
	`{"v":"clutch/0.1","id":"b1","type":"task.request","task_id":"T7","from":{"agent_id":"agent:bob"}}`,
}

// clutchInbox are lines such as "accept T1": each has an id of its own, which "=" gives, and
// the id of the message that it answers behind "<".
func clutchInbox(words string) error {
	var inbox [][]byte
	for i, said := range strings.Split(words, ", ") {
		parts := strings.Fields(said)
		id, cause := fmt.Sprint("a", i), ""
		for _, more := range parts[2:] {
			if named, ok := strings.CutPrefix(more, "="); ok {
				id = named
			} else if named, ok := strings.CutPrefix(more, "<"); ok {
				cause = named
			}
		}
		word, code, _ := strings.Cut(parts[0], ":")
		if !strings.Contains(word, ".") {
			word = "task." + word
		}
		inbox = append(inbox, fmt.Appendf(nil, `{"v":"clutch/0.1","id":%q,"type":%q,"task_id":%q,"payload":{"code":%q},"meta":{"causation_id":%q}}`, id, word, parts[1], code, cause))
	}
	var sent [][]byte
	for _, line := range clutchSent {
		sent = append(sent, []byte(line))
	}
	return strict.Sequence("ann", sent, inbox)
}

// CLUTCH-31: task.accept <= task.progress* <= exactly one terminal message.
func TestSequencesOfClutchPass(t *testing.T) {
	for _, good := range []string{
		"accept T1, progress T1, progress T1, result T1",
		"accept T1, timeout T1",
		"error T1",
		"cancel T1",
		"accept T1, error T1, accept T1, progress T1, result T1",
		"accept T2, result T2, error:CONFLICT T2",
		"accept T2, error:CONFLICT T2, result T2",
		"error T2, accept T2, result T2",
		"request T9, cancel T9",
		"error T8 <c1, chat.system T8",
		"tool.error T8 <k1",
		"accept h-c14cddc033f64b9dea80ea675cf280a0, result h-c14cddc033f64b9dea80ea675cf280a0",
		"accept a/b, result a/b",
		"accept T1 =x, result T1, accept T1 =x", // CLUTCH-50: a line that is there twice counts once
	} {
		if err := clutchInbox(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

func TestAPlantedFaultInASequenceOfClutchIsFound(t *testing.T) {
	for _, bad := range []string{
		"accept T1, result T1, result T1",
		"accept T1, result T1, error T1",
		"accept T1, error T1, result T1",
		"accept T1, result T1, progress T1",
		"progress T1, accept T1",
		"accept T1, accept T1",
		"accept T1, progress T1, accept T1",
		"accept T1, result T1, accept T1",
		"accept T1, cancel T1, result T1",
		"accept T1, cancel T1, accept T1",
		"accept T7, result T7",
		"result T5",
		"result T8",
		"accept T2, result T2, error T2, error T2",
		"request T9, cancel T9, cancel T9",
		"cancel T9",
		"error T8 <c1, error T8 <c1",
		"tool.error T8",
		"tool.error T8 <c1",
		"accept T1 =x, result T1 =x",
	} {
		if clutchInbox(bad) == nil {
			t.Errorf("%s passes", bad)
		}
	}
}
