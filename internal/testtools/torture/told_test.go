package torture_test

import (
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/testtools/strict"
)

// A told is what was said to the requester, of a line in their inbox.
type notified struct {
	MID string `json:"mid"`
	PID string `json:"pid"`
	P   string `json:"p"`
}

// notice reads a line of the inbox, and reports whether it is whole.
func notice(line []byte) (m notified, whole bool) {
	var c struct {
		Version string `json:"v"`
		ID      string `json:"id"`
		Task    string `json:"task_id"`
		Type    string `json:"type"`
	}
	if json.Unmarshal(line, &c) == nil && c.Version != "" {
		as := map[string]string{"task.accept": "ACK", "task.progress": "PROG", "task.result": "DONE", "task.error": "ERR", "task.timeout": "ERR", "task.cancel": "ERR"}
		return notified{MID: c.ID, PID: c.Task, P: as[c.Type]}, strict.Clutch(line) == nil
	}
	return m, json.Unmarshal(line, &m) == nil && strict.CLowl(line) == nil
}

// checkTold looks for what was said of each task that was asked for in CLowl or Clutch: that
// it was taken, once and first, and how it ended, once and last. A line may be
// there more than once, and is the same then.
func (s *site) checkTold(t *testing.T, b *book) {
	t.Helper()
	text, err := os.ReadFile(s.path("box/agents/torture/inbox.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	lines, of, twice := map[string]string{}, map[string][]string{}, 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		m, whole := notice([]byte(line))
		if !whole {
			continue // half of one, where the daemon died
		}
		if was, known := lines[m.MID]; known {
			if twice++; was != line {
				t.Errorf("message %s is both %s and %s", m.MID, was, line)
			}
			continue
		}
		lines[m.MID] = line
		of[m.PID] = append(of[m.PID], m.P)
	}
	asked := 0
	for _, p := range b.promises {
		if !p.foreign && !p.clutch {
			continue
		}
		asked++
		if err := inOrder(of[p.id]); err != "" && !s.damage.toldAgain(p, of[p.id]) {
			t.Errorf("task %s: its requester was told %v; want %s", p.id, of[p.id], err)
		}
	}
	t.Logf("%d tasks were told of in %d messages, %d of which lay there again", asked, len(lines), twice)
}

// inOrder says what is wrong with what was told of a task; "" when nothing is.
func inOrder(notified []string) string {
	taken, ended := 0, 0
	for _, p := range notified {
		switch p {
		case "ACK":
			taken++
		case "DONE", "ERR":
			ended++
		}
	}
	switch {
	case ended != 1:
		return "one end"
	case taken != 1 || notified[0] != "ACK":
		return "first that it was taken, once"
	case notified[len(notified)-1] != "DONE" && notified[len(notified)-1] != "ERR":
		return "nothing behind its end"
	}
	return ""
}
