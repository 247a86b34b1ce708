package notice

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// ends is a notifier of ended tasks; its commands write their arguments and standard input.
func (d *testDesktop) ends() *Notifier {
	command := func(kind string) []string {
		return []string{"/bin/sh", "-c", "(echo \"$*\"; cat) >> '" + d.board + "." + kind + "'", kind}
	}
	n := New(d.t.Context(), Commands{Finished: command(finished), Failed: command(failed)}, true, d.memory, zerolog.New(&d.log))
	n.batchTime, n.rest = 0, 0
	return n
}

// end ends a task as the engine does.
func (d *testDesktop) end(id envelope.ID, status envelope.Status, kind envelope.Kind, result string) {
	d.t.Helper()
	d.update(func(tx *ledger.Tx) error {
		moved, err := tx.Move(d.seqs[id], task.Held, 0, task.Change{To: task.Done, Status: status, Kind: kind, Result: []byte(result)})
		if err != nil || !moved {
			d.t.Fatalf("end %s: %v, %v", id, moved, err)
		}
		return tx.Log(task.Event{Time: time.Now(), Kind: task.KindTaskFinished, Task: id, Revision: 1})
	})
}

// shown returns what a command got, and removes it: the arguments, and the notice.
func (d *testDesktop) shown(kind string) (arguments string, about Notice) {
	d.t.Helper()
	text, err := os.ReadFile(d.board + "." + kind)
	if err != nil {
		return "", about
	}
	if err := os.Remove(d.board + "." + kind); err != nil {
		d.t.Fatal(err)
	}
	arguments, input, _ := strings.Cut(string(text), "\n")
	if err := json.Unmarshal([]byte(input), &about); err != nil {
		d.t.Fatalf("standard input %q: %v", input, err)
	}
	return arguments, about
}

func TestEachEndIsReportedOnceToItsCommand(t *testing.T) {
	d := newDesktop(t)
	d.add("early")
	d.end("early", envelope.OK, "", `{}`)
	n := d.ends()
	d.add("t1")
	d.add("t2")
	d.add("t3")
	d.add("t4")
	d.end("t1", envelope.OK, "", `{"output":{"text":"$(rm -rf /) <b>"}}`)
	d.end("t2", envelope.Failed, envelope.Timeout, `{"error":{"kind":"timeout"}}`)
	d.end("t3", envelope.Stopped, envelope.Cancelled, `{}`)
	for range 2 {
		if _, err := n.lookAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.update(func(tx *ledger.Tx) error { // a later event of an ended task reports nothing again
			return tx.Log(task.Event{Time: time.Now(), Kind: task.KindResultAdopted, Task: "t1", Revision: 1})
		})
	}
	arguments, about := d.shown(finished)
	if want := "A task finished Task t1: ok. See: mailboxd result t1"; arguments != want {
		t.Errorf("the arguments are %q; want %q, with no word of an agent", arguments, want)
	}
	if len(about.Tasks) != 1 || !strings.Contains(string(about.Tasks[0].Result), "<b>") {
		t.Errorf("standard input has %+v; want the result of t1 only", about)
	}
	arguments, about = d.shown(failed)
	if want := "A task failed Task t2: error (timeout). See: mailboxd show t2"; arguments != want {
		t.Errorf("the arguments are %q; want %q", arguments, want)
	}
	if about.Kind != failed || about.Count != 1 || about.Tasks[0].ErrorKind != envelope.Timeout {
		t.Errorf("standard input has %+v; want the failure of t2 only", about)
	}
	d.end("t4", envelope.Partial, "", `{}`)
	if _, err := n.lookAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if arguments, _ = d.shown(finished); !strings.Contains(arguments, "t4: partial") {
		t.Errorf("the arguments are %q; want those of t4", arguments)
	}
}

func TestManyEndsAreOneNotice(t *testing.T) {
	d := newDesktop(t)
	n := d.ends()
	for _, id := range []envelope.ID{"a", "b", "<b>"} {
		d.add(id)
		d.end(id, envelope.OK, "", `{}`)
	}
	if _, err := n.lookAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	arguments, about := d.shown(finished)
	if want := "3 tasks finished See: mailboxd ps"; arguments != want || about.Count != 3 || len(about.Tasks) != 3 {
		t.Errorf("the notice is %q with %+v; want %q with three tasks", arguments, about, want)
	}
}

func TestAnAnswerInReviewIsNotPartOfANotice(t *testing.T) {
	d := newDesktop(t)
	d.add("t1")
	d.move("t1", task.Held, task.Review, "task.finished")
	rows, err := d.memory.Tasks(t.Context(), ledger.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	n := d.post()
	about := n.notice(t.Context(), waits, "", "", rows)
	if len(about.Tasks) != 1 || about.Tasks[0].Result != nil || about.Tasks[0].Waits[0] != inReview {
		t.Errorf("the notice has %+v; want the task without its answer", about.Tasks)
	}
}
