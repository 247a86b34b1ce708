package runnerdaemon

import (
	"os"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

// wordy is an agent whose errors are too large to travel.
const wordy = `
agents:
  - id: wordy
    exec: {command: [sh, -c, 'truncate -s 300M /proc/self/fd/2; echo done'], output: text, max_output: 419430400}
`

func TestWhatIsTooLargeToTravelIsNamedAndStaysForAWhile(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, wordy)
	r.start()
	said, objects := o.outcome(o.give("wordy", nil))
	for _, object := range objects {
		if object.Name == runner.StderrFile {
			t.Errorf("the object %+v travelled", object)
		}
	}
	path := r.state("left", "run-1", runner.StderrFile)
	if len(said.Left) != 1 || said.Left[0].Path != path || !strings.Contains(said.Left[0].What, "300 MiB") {
		t.Fatalf("left %+v; want %s", said.Left, path)
	}
	o.await(path, func() bool { _, err := os.Stat(path); return err == nil }) // the outcome is settled before
	if info, err := os.Stat(path); err != nil || info.Size() != 300<<20 {
		t.Errorf("%s is %v, %v; want 300 MiB", path, info, err)
	}
	r.stop()
	old := time.Now().Add(-2 * leftKept)
	if err := os.Chtimes(r.state("left", "run-1"), old, old); err != nil {
		t.Fatal(err)
	}
	transfers := []string{r.state(".object-1"), r.state(".published-1")} // of a program that was killed
	for _, file := range transfers {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := o.session
	r.start()
	o.await("another session", func() bool { return o.session != before })
	for _, gone := range append(transfers, r.state("left", "run-1")) {
		if _, err := os.Stat(gone); !os.IsNotExist(err) {
			t.Errorf("%s is left (%v)", gone, err)
		}
	}
}

func TestASettledRunWhoseFilesCannotBeKeptApartYetIsKnownToTheJournal(t *testing.T) {
	o := newOwner(t)
	r := newRunner(t, o, wordy)
	r.start()
	o.await("a report", func() bool { return o.report.Incarnation != "" })
	before, blocked := o.incarnation(), r.state("left")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.outcome(o.give("wordy", nil))
	o.await("no run", func() bool { return len(o.report.Runs) == 0 })
	r.stop()
	session := o.session
	r.start()
	o.await("another session", func() bool { return o.session != session })
	if o.incarnation() != before {
		t.Error("the journal has another incarnation")
	}
	if _, err := os.Stat(r.state("runs", "run-1", runner.StderrFile)); err != nil {
		t.Errorf("what did not travel: %v", err)
	}
	r.stop()
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	r.start()
	o.await("the files that are kept apart", func() bool {
		_, err := os.Stat(r.state("left", "run-1", runner.StderrFile))
		return err == nil
	})
}

func TestNotesThatWaitForTheOwnerAreLimitedAndNoQuestionIsLost(t *testing.T) {
	d := &daemon{name: "r1", journal: &journal{incarnation: "i"}}
	n := &notes{d: d, one: &run{token: "1-1-1-1-r"}, more: make(chan struct{}, 1)}
	report := func(text string) { n.add(fleet.Note{Report: &envelope.Message{Text: text}}) }
	report("in flight")
	n.add(fleet.Note{Ask: &fleet.AskNote{Call: task.Call{ID: "call-1"}, Made: true}})
	for range 2 * mostNotes {
		report("old")
	}
	report("newest")
	if len(n.queue) != mostNotes || n.queue[0].Report.Text != "in flight" || n.queue[1].Ask == nil || n.queue[mostNotes-1].Report.Text != "newest" {
		t.Errorf("%d notes wait, the first %+v, %+v, the last %+v", len(n.queue), n.queue[0], n.queue[1], n.queue[len(n.queue)-1])
	}
}
