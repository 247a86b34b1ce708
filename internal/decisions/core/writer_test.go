package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/slowtest"
)

// A mirror has each decision of a world made again, by the writer of the engine, on what the
// ledger has of the task. Then the ledger has to have the tasks of the world.
type mirror struct {
	dir     string // of the ledger
	ledger  *ledger.Ledger
	writer  *store.Writer
	decided []decided // since the last group
}

// decided is a command that changed something, and when it was decided.
type decided struct {
	command core.Command
	at      time.Time
	answer  error
}

// newMirror makes a mirror with an empty ledger, in memory where the machine has files there.
func newMirror(t *testing.T, cfg core.Config) *mirror {
	dir, err := os.MkdirTemp("/dev/shm", "ledger")
	if err != nil {
		dir = t.TempDir()
	}
	l, _, err := ledger.Open(filepath.Join(dir, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	agents := store.Agents{ApprovalTTL: func() time.Duration { return cfg.ApprovalTTL }}
	opts := store.Options{MaxPriority: cfg.MaxPriority}
	return &mirror{dir: dir, ledger: l, writer: &store.Writer{Shared: &store.Shared{Parts: store.Parts{Ledger: l}, Agents: agents, Opts: opts}}}
}

// close removes the ledger.
func (m *mirror) close() error { return errors.Join(m.ledger.Close(), os.RemoveAll(m.dir)) }

// note keeps a command of which the world has decided something.
func (m *mirror) note(c core.Command, events []core.Event, answer error, at time.Time) {
	if len(events) > 0 {
		m.decided = append(m.decided, decided{command: c, at: at, answer: answer})
	}
}

// commit makes the decisions of a group in the ledger, and compares it with the world.
func (m *mirror) commit(w *world, events []core.Event) error {
	_, err := m.writer.Commit(context.Background(), func(tx *store.Transaction) error {
		for _, d := range m.decided {
			if err := m.decide(tx, w, d); err != nil {
				return fmt.Errorf("%T: %w", d.command, err)
			}
		}
		if len(m.decided) == 0 && len(events) > 0 {
			return tx.MarkPut(events[0].Task, true)
		}
		return nil
	})
	m.decided = nil
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := errors.Join(m.compare(w, e.Task), m.settled(e.Change)); err != nil {
			return err
		}
	}
	return nil
}

// settled checks that the ledger has a run as settled that is over, and none that is void.
func (m *mirror) settled(c core.Change) error {
	var name task.RunName
	switch c := c.(type) {
	case *core.RunEnded:
		name = task.RunName{Task: c.Run.Task, Attempt: c.Run.Attempt}
	case *core.RunReleased:
		name = c.Run
	case *core.RunVoid:
		name = c.Run
	default:
		return nil
	}
	runs, err := m.ledger.Runs(context.Background(), name.Task)
	at := slices.IndexFunc(runs, func(r task.Run) bool { return r.Attempt == name.Attempt })
	if _, isVoid := c.(*core.RunVoid); err == nil && isVoid != (at < 0) || at >= 0 && !runs[at].Settled {
		return fmt.Errorf("after %T the ledger has %+v", c, runs)
	}
	return err
}

func (m *mirror) decide(tx *store.Transaction, w *world, d decided) error {
	state, err := m.load(tx, w, d)
	if err != nil {
		return err
	}
	answer, err := m.writer.DecideIn(tx, state, d.command, d.at)
	if err == nil && fmt.Sprint(answer) != fmt.Sprint(d.answer) {
		return fmt.Errorf("the writer answers %v, and the world %v", answer, d.answer)
	}
	return err
}

// load loads what a command concerns, as the engine does.
func (m *mirror) load(tx *store.Transaction, w *world, d decided) (*core.State, error) {
	if c, ok := d.command.(*core.Accept); ok {
		return store.LoadRevisions(tx, c.Request.ID)
	}
	t := w.state.Task(reflect.ValueOf(d.command).Elem().FieldByName("Task").Int())
	_, resubmits := d.command.(*core.Resubmit)
	if c, ok := d.command.(*core.Judge); resubmits || ok && c.Seen.State == task.Received {
		return store.LoadRevisions(tx, t.ID)
	}
	return store.TaskLoader(t.Seq, t.Began, true)(tx)
}

// compare compares a task of the ledger with that of the world: its row, and what the engine loads for a decision.
func (m *mirror) compare(w *world, seq int64) error {
	want := *w.state.Task(seq)
	var state *core.State
	_, err := m.writer.Commit(context.Background(), func(tx *store.Transaction) (err error) {
		state, err = store.TaskLoader(seq, want.Began, true)(tx)
		return err
	})
	if err != nil {
		return err
	}
	got := *state.Task(seq)
	got.Finished = want.Finished // the time at which the writer wrote it
	if len(got.Reasons)+len(want.Reasons) == 0 {
		got.Reasons = want.Reasons
	}
	for _, c := range append([]*task.Consent{got.Start, got.Show}, got.Calls...) {
		if c != nil {
			c.Seq = 0 // the ledger sets it
		}
	}
	if want.State != task.Review {
		want.Show = nil
	}
	if want.State != task.Running {
		want.Calls = nil
	}
	if want.State != task.Waiting {
		want.Token = ""
	}
	if got.Run == nil { // of a task in another state, no decision needs it
		want.Run = nil
	} else if want.Run != nil {
		got.Run.Started = want.Run.Started   // the ledger notes when it was claimed
		got.Run.Reserved = want.Run.Reserved // less what it has lent
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("the ledger has\n%s\nand the world\n%s", text(got), text(want))
	}
	return nil
}

// text writes a task out, with what it points to.
func text(t core.Task) string {
	all, err := json.Marshal(t)
	return fmt.Sprint(string(all), err)
}

func TestTheWriterKeepsWhatTheCoreDecides(t *testing.T) {
	t.Parallel()
	playBesideWriter(t, *firstSeed, 50)
}

func TestTheWriterKeepsWhatTheCoreDecidesInTenThousandSchedules(t *testing.T) {
	slowtest.Require(t, "it makes 10,000 ledgers")
	const parts = 4
	for n := range uint64(parts) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			playBesideWriter(t, *firstSeed+n*10_000/parts, 10_000/parts)
		})
	}
}

// playBesideWriter plays schedules with a mirror.
func playBesideWriter(t *testing.T, first uint64, count int) {
	for seed := range uint64(count) {
		w := newWorld(seeded(first + seed))
		w.mirror = newMirror(t, w.cfg)
		err := w.play(stepsOfSchedule)
		if err := errors.Join(err, w.mirror.close()); err != nil {
			t.Fatalf("schedule %d: %v", first+seed, err)
		}
	}
}
