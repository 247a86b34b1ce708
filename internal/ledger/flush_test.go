package ledger_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// Whether a change waits in the redo log, is being folded, or went to the tables at
// once, nobody can tell: neither by what it answers nor by what is read then, also
// when the power went meanwhile.
func TestALedgerIsTheSameWhereverItsChangesAre(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			path := filepath.Join(t.TempDir(), "ledger.db")
			late, eager := openAt(t, path), open(t)
			for range 150 {
				step := randomStep(dice)
				asks := dice.IntN(30) == 0
				got := took(t, late, step, asks)
				if want := took(t, eager, step, true); got != want {
					t.Fatalf("%+v = %s; want %s", step, got, want)
				}
				if dice.IntN(30) == 0 {
					if diff := cmp.Diff(books(t, eager.Reader), books(t, late.Reader), sameTimes); diff != "" {
						t.Fatalf("after %+v (-want +got):\n%s", step, diff)
					}
				}
			}
			want, copied := books(t, eager.Reader), copyOf(t, path, "", 0)
			if diff := cmp.Diff(want, books(t, openAt(t, copied).Reader), sameTimes); diff != "" {
				t.Errorf("after a power cut (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, books(t, late.Reader), sameTimes); diff != "" {
				t.Errorf("in the end (-want +got):\n%s", diff)
			}
		})
	}
}

// A step is one change of a few tasks.
type step struct {
	what    string
	seq     int64
	id      envelope.ID
	from    task.State
	attempt int
	change  task.Change
	run     task.Run
	number  int
}

func randomStep(dice *rand.Rand) step {
	states := task.States()
	seq := 1 + dice.Int64N(8)
	tokens := dice.Int64N(5)
	s := step{
		what: []string{"add", "add", "move", "move", "move", "move", "start", "finish", "process", "put", "settle", "log", "file", "letter", "drop", "look"}[dice.IntN(16)],
		seq:  seq, id: envelope.ID(fmt.Sprint("task-", dice.IntN(10))),
		from: states[dice.IntN(2)+2], attempt: dice.IntN(2), number: dice.IntN(1000),
		change: task.Change{To: states[dice.IntN(len(states))], Attempt: dice.IntN(2), Until: noon.Add(time.Duration(dice.IntN(9)) * time.Second)},
		run:    task.Run{Task: seq, Attempt: dice.IntN(3), ID: "run", Intent: noon, Started: noon, Finished: noon.Add(time.Minute), ExitCode: dice.IntN(3)},
	}
	if dice.IntN(2) == 0 {
		s.change.Result = fmt.Appendf(nil, "result %d", s.number)
		s.change.Status, s.change.Reasons = envelope.OK, []task.Reason{task.Capacity}
	}
	if dice.IntN(4) == 0 {
		s.run.Tokens = &tokens
	}
	return s
}

// took takes a step and says what that answered.
func took(t *testing.T, l *ledger.Ledger, s step, asks bool) (answer string) {
	t.Helper()
	err := l.Update(t.Context(), func(tx *ledger.Tx) (err error) {
		answer = ""
		if asks {
			if _, _, err := tx.Conversation(1); err != nil {
				return err
			}
		}
		defer func() {
			if err == nil && asks {
				_, _, err = tx.Conversation(1)
			}
		}()
		switch s.what {
		case "add":
			row, _, err := tx.Latest(s.id)
			if err != nil {
				return err
			}
			row.Finished = time.Time{}
			seq, err := tx.Add(task.Task{ID: s.id, Revision: row.Revision + 1, State: task.Queued, Received: noon}, []byte(s.id))
			answer = fmt.Sprint(seq, row)
			return err
		case "move":
			moved, err := tx.Move(s.seq, s.from, s.attempt, s.change)
			answer = fmt.Sprint(moved)
			return err
		case "start":
			return tx.StartRun(s.run)
		case "finish":
			return tx.FinishRun(s.run)
		case "process":
			return tx.SetProcess(s.seq, s.attempt, s.number, 1, "boot")
		case "put":
			return tx.MarkPut(s.seq)
		case "settle":
			return tx.MarkSettled(s.seq)
		case "log":
			return tx.Log(task.Event{Time: noon, Kind: task.Kind(fmt.Sprint("kind-", s.number))})
		case "file":
			tx.SetFile(ledger.File{Path: "tasks/a.jsonl", Offset: int64(s.number)})
			return nil
		case "letter":
			tx.AddDeadLetter(fmt.Appendf(nil, "letter %d", s.number))
			return nil
		case "drop":
			return tx.DropDeadLetters(s.seq)
		default:
			row, found, err := tx.Task(s.seq)
			last, known, err2 := tx.Latest(s.id)
			row.Finished, last.Finished = time.Time{}, time.Time{}
			answer = fmt.Sprint(row, found, last, known)
			return errors.Join(err, err2)
		}
	})
	return fmt.Sprint(answer, " failed: ", err != nil)
}

// sameTimes leaves out when something was done that both did.
var sameTimes = cmp.Options{
	cmpopts.IgnoreFields(task.Task{}, "Finished"),
	cmpopts.IgnoreFields(task.Event{}, "Of"),
}

// books is all that a ledger has.
func books(t *testing.T, r *ledger.Reader) (all []any) {
	t.Helper()
	ctx := t.Context()
	tasks, err := r.Tasks(ctx, ledger.Filter{All: true})
	for _, row := range tasks {
		runs, err1 := r.Runs(ctx, row.Seq)
		raw, err2 := r.Raw(ctx, row.Seq)
		result, err3 := r.Result(ctx, row.Seq)
		if errors.Is(err3, ledger.ErrUnknown) {
			err3 = nil
		}
		all = append(all, row, runs, string(raw), string(result))
		err = errors.Join(err, err1, err2, err3)
	}
	events, err1 := r.Events(ctx, "", 0, 1000)
	files, err2 := r.Files(ctx)
	letters, err3 := r.DeadLetters(ctx, 1<<20)
	if err = errors.Join(err, err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return append(all, events, files, letters)
}
