package ledger_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/internal/task"

	"github.com/google/go-cmp/cmp"
)

// Nobody can tell whether a change is in the index, in the memory of the daemon, or in the
// journal alone: all of them answer every question in the same way.
func TestALedgerIsTheSameWhereverItsChangesAre(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			path := filepath.Join(t.TempDir(), "ledger.db")
			l := openAt(t, path)
			steps(t, l, dice, 60)
			books(t, l.Reader) // so the index has this
			late := copyOf(t, path)
			steps(t, l, dice, 150)
			text, err := os.ReadFile(segment(path))
			if err != nil {
				t.Fatal(err)
			}
			write(t, segment(late), text)
			want := books(t, l.Reader)
			for what, copied := range map[string]string{"half of it in the index": late, "no index": copyOf(t, late)} {
				if what == "no index" {
					removeAll(t, indexOf(copied), "", "-wal", "-shm")
				}
				r, err := ledger.OpenReader(copied)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, books(t, r)); diff != "" {
					t.Errorf("%s: a reader (-want +got):\n%s", what, diff)
				}
				if err := play(t, "one more", copied).Run(); err != nil {
					t.Fatal(err)
				}
				now, err := ledger.OpenReader(copied)
				if err != nil {
					t.Fatal(err)
				}
				after := books(t, now)
				if diff := cmp.Diff(after, books(t, r)); diff != "" && what != "no index" {
					t.Errorf("%s: a reader of before, when the index has moved on (-want +got):\n%s", what, diff)
				}
				if err := errors.Join(r.Close(), now.Close()); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(after, books(t, openAt(t, copied).Reader)); diff != "" {
					t.Errorf("%s: the next daemon (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

// steps makes random changes of a few tasks.
func steps(t *testing.T, l *ledger.Ledger, dice *rand.Rand, n int) {
	t.Helper()
	for range n {
		seq, number := 1+dice.Int64N(8), dice.Int64N(1000)
		change := randomChange(dice)
		from, attempt, id := task.States()[dice.IntN(2)+2], dice.IntN(2), envelope.ID(fmt.Sprint("task-", dice.IntN(10)))
		what := dice.IntN(22)
		_ = l.Update(t.Context(), func(tx *ledger.Tx) error { return step(tx, what, seq, number, id, from, attempt, change) })
	}
}

func randomChange(dice *rand.Rand) task.Change {
	states := task.States()
	c := task.Change{To: states[dice.IntN(len(states))], Attempt: dice.IntN(2), Until: noon.Add(time.Duration(dice.IntN(9)) * time.Second)}
	if dice.IntN(2) == 0 {
		c.Result, c.Status, c.Reasons = fmt.Appendf(nil, "result %d", dice.IntN(100)), envelope.OK, []task.Reason{task.Capacity}
	}
	return c
}

func step(tx *ledger.Tx, what int, seq, number int64, id envelope.ID, from task.State, attempt int, change task.Change) error {
	name := fmt.Sprint("name-", number%5)
	run := task.Run{
		Task: seq, Attempt: attempt, ID: "run", Intent: noon, Started: noon, Finished: noon.Add(time.Minute), ExitCode: int(number % 3), Tokens: &number,
		Reserved: envelope.Budget{Tokens: &number}, Terms: task.Terms{Accounts: []task.Account{{Owner: name, Day: "2026-03-09"}}},
	}
	switch what {
	case 0, 1, 2:
		row, _, err := tx.Latest(id)
		if err != nil {
			return err
		}
		_, err = tx.Add(task.Task{ID: id, Revision: row.Revision + 1, State: task.Queued, Received: noon, Parent: seq - 1, Requester: name}, []byte(id))
		return err
	case 3, 4, 5, 6:
		_, err := tx.Move(seq, from, attempt, change)
		return err
	case 7:
		return tx.StartRun(run)
	case 8:
		return tx.FinishRun(run)
	case 9:
		return tx.VoidRun(seq, attempt)
	case 10:
		return tx.MarkPut(seq)
	case 11:
		return tx.MarkSettled(seq)
	case 12, 13:
		return tx.Log(task.Event{Time: noon, Kind: task.Kind(fmt.Sprint("kind-", number)), Of: seq * (number % 2)})
	case 14:
		tx.SetFile(ledger.File{Path: name, Offset: number, Head: []byte{0, 255}})
	case 15:
		tx.AddDeadLetter(fmt.Appendf(nil, "letter %d", number))
	case 16:
		return tx.DropDeadLetters(seq)
	case 17:
		_, err := tx.Pause(name)
		return err
	case 18:
		_, err := tx.Resume(name)
		return err
	case 19:
		return errors.Join(tx.StartConversation(task.Conversation{Task: seq, Message: name, Thread: name, Trace: name, Open: number%2 == 0}),
			tx.Announce(task.Announcement{Name: name, Supports: []string{fmt.Sprint(number)}, Since: noon}))
	case 20:
		said, err := tx.Record(task.Message{Time: noon, ID: name, Task: seq, Thread: name, Trace: name, Hash: fmt.Sprint(number), Inbox: "in", Body: []byte("body\n" + name)})
		if err == nil && number%2 == 0 {
			err = tx.MarkDelivered(said, noon)
		}
		return err
	case 21:
		return errors.Join(tx.Ask(task.Consent{Task: seq, Stage: envelope.ApprovalPre, Digest: name, Asked: noon}), tx.Deliver(seq), tx.MarkAppended(seq, noon))
	}
	return nil
}

// books is all that a reader answers.
func books(t *testing.T, r *ledger.Reader) (all []any) {
	t.Helper()
	ctx := t.Context()
	note := func(answer any, err error) {
		t.Helper()
		if err != nil && !errors.Is(err, ledger.ErrUnknown) {
			t.Fatal(err)
		}
		all = append(all, answer)
	}
	ask := func(answer any, found bool, err error) {
		t.Helper()
		note([]any{answer, found}, err)
	}
	tasks, err := r.Tasks(ctx, ledger.Filter{All: true})
	note(tasks, err)
	for _, row := range tasks {
		seq := row.Seq
		for _, read := range []func() (any, error){
			func() (any, error) { return r.Task(ctx, seq) },
			func() (any, error) { return r.Raw(ctx, seq) },
			func() (any, error) { return r.Result(ctx, seq) },
			func() (any, error) { return r.Withheld(ctx, seq) },
			func() (any, error) { return r.Runs(ctx, seq) },
			func() (any, error) { return r.Revisions(ctx, row.ID) },
			func() (any, error) { return r.Children(ctx, seq) },
			func() (any, error) { return r.ChildrenBefore(ctx, seq, 7) },
			func() (any, error) { return r.Dependents(ctx, seq) },
			func() (any, error) { return r.Approvals(ctx, seq) },
			func() (any, error) { return r.Delivery(ctx, seq) },
			func() (any, error) { return r.About(ctx, seq) },
			func() (any, error) { return r.MessagesAround(ctx, seq) },
			func() (any, error) { return r.Events(ctx, row.ID, 3, 1000) },
			func() (any, error) { return r.Story(ctx, row.ID, 4) },
			func() (any, error) { return r.EventsSince(ctx, seq, 2) },
			func() (any, error) { return r.Reserved(ctx, task.RunName{Task: seq, Attempt: 1}) },
		} {
			note(read())
		}
		ask(r.Conversation(ctx, seq))
	}
	for n := range 5 {
		name := fmt.Sprint("name-", n)
		note(r.Balance(ctx, name, "2026-03-09"))
		note(r.Thread(ctx, name))
		note(r.Trace(ctx, name))
		note(r.ThreadTasks(ctx, name))
		note(r.TraceTasks(ctx, name))
		note(r.OpenInThread(ctx, name))
		note(r.Requested(ctx, name, name))
		note(r.MessagesWithID(ctx, name))
		ask(r.AnyMessageWithID(ctx, name))
		note(r.Tasks(ctx, ledger.Filter{Requester: name, NewestFirst: true, Limit: 3}))
		note(r.Count(ctx, ledger.Filter{Requester: name}))
	}
	for _, read := range []func() (any, error){
		func() (any, error) { return r.Events(ctx, "", 0, 10_000) },
		func() (any, error) { return r.LastEvent(ctx) },
		func() (any, error) { return r.Find(ctx, "task-") },
		func() (any, error) { return r.Files(ctx) },
		func() (any, error) { return r.DeadLetters(ctx, 1<<20) },
		func() (any, error) { return r.Paused(ctx) },
		func() (any, error) { return r.Announcements(ctx) },
		func() (any, error) { return r.Balances(ctx, "2026-03-09") },
		func() (any, error) { return r.CountOpen(ctx) },
		func() (any, error) { return r.Finals(ctx, 0, 100) },
		func() (any, error) { return r.Due(ctx, 0, 100) },
		func() (any, error) { return r.Cancelled(ctx) },
		func() (any, error) { return r.WithOpenNotifications(ctx) },
		func() (any, error) { return r.CountOver(ctx, noon.AddDate(10, 0, 0)) },
		func() (any, error) { return r.Lost(ctx) },
	} {
		note(read())
	}
	return all
}
