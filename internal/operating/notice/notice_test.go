package notice

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// A testDesktop is a ledger, and a command that writes down what it is told.
type testDesktop struct {
	t      *testing.T
	memory *ledger.Ledger
	board  string // the file
	log    strings.Builder
	seqs   map[envelope.ID]int64
}

func newDesktop(t *testing.T) *testDesktop {
	t.Helper()
	dir := t.TempDir()
	memory, _, err := ledger.Open(filepath.Join(dir, "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	return &testDesktop{t: t, memory: memory, board: filepath.Join(dir, "board"), seqs: map[envelope.ID]int64{}}
}

// notices are those of a daemon that was just started; script is the command.
func (d *testDesktop) notices(script string) *Notifier {
	return &Notifier{
		commands: Commands{Waits: []string{"/bin/sh", "-c", script, "sh"}}, memory: d.memory,
		notified: map[int64][]task.Reason{}, timeout: time.Minute, log: zerolog.New(&d.log),
	}
}

func (d *testDesktop) post() *Notifier { return d.notices("echo \"$*\" >> '" + d.board + "'") }

func (d *testDesktop) update(fn func(tx *ledger.Tx) error) {
	d.t.Helper()
	if err := d.memory.Update(d.t.Context(), fn); err != nil {
		d.t.Fatal(err)
	}
}

// add adds a task that is held for reasons.
func (d *testDesktop) add(id envelope.ID, reasons ...task.Reason) {
	d.t.Helper()
	d.update(func(tx *ledger.Tx) (err error) {
		d.seqs[id], err = tx.Add(task.Task{ID: id, Revision: 1, State: task.Held, Reasons: reasons}, nil)
		return err
	})
}

// move moves a task, and tells of it as the engine does.
func (d *testDesktop) move(id envelope.ID, from, to task.State, kind string, reasons ...task.Reason) {
	d.t.Helper()
	d.update(func(tx *ledger.Tx) error {
		moved, err := tx.Move(d.seqs[id], from, 0, task.Change{To: to, Reasons: reasons})
		if err != nil || !moved {
			d.t.Fatalf("move %s from %s: %v, %v", id, from, moved, err)
		}
		return tx.Log(task.Event{Time: time.Now(), Kind: task.Kind(kind), Task: id, Revision: 1})
	})
}

// look lets the notices look, and wants that these words, or nothing, were put up.
func (d *testDesktop) look(n *Notifier, words string) {
	d.t.Helper()
	if _, err := n.look(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	text, _ := os.ReadFile(d.board) // no notice, no board
	if got := string(text); words == "" && got != "" || !strings.Contains(got, words) || strings.Count(got, "\n") > 1 {
		d.t.Errorf("the notice says %q; want one with %q", got, words)
	}
	_ = os.Remove(d.board) // likewise
}

func TestAPersonIsToldOnceOfATaskThatWaits(t *testing.T) {
	d := newDesktop(t)
	d.add("t1", task.Approval, task.ChangeWindow)
	n := d.post()
	d.look(n, "Task t1: it needs an approval. See: mailboxd show t1")
	d.look(n, "")
	d.look(d.post(), "") // of another daemon, later
	d.move("t1", task.Held, task.Held, "task.held", task.Approval)
	d.look(n, "")
	d.move("t1", task.Held, task.Held, "task.held", task.Approval, task.AuthRequired)
	d.look(n, "Task t1")
}

func TestAPersonIsToldAgainWhenATaskWaitsAnew(t *testing.T) {
	d := newDesktop(t)
	d.add("t1", task.Approval)
	n := d.post()
	d.look(n, "Task t1")
	d.move("t1", task.Held, task.Queued, "task.queued")
	d.look(n, "")
	d.move("t1", task.Queued, task.Held, "task.held", task.Approval)
	d.look(n, "Task t1")
	d.move("t1", task.Held, task.Queued, "task.queued")
	d.move("t1", task.Queued, task.Held, "task.held", task.Approval)
	d.look(d.post(), "Task t1") // the daemon that saw it go on is no more
}

func TestManyTasksAreOneNotice(t *testing.T) {
	d := newDesktop(t)
	d.add("t1", task.Approval)
	d.add("t2", task.Recovered)
	d.add("t3", task.ResultInvalid)
	d.look(d.post(), "3 tasks wait for a person")
}

func TestAReviewWaitsForAPerson(t *testing.T) {
	d := newDesktop(t)
	d.add("t1", task.Capacity)
	d.move("t1", task.Held, task.Review, "task.reviewed")
	n := d.post()
	d.look(n, "") // an overseer decides
	d.update(func(tx *ledger.Tx) error {
		return tx.Ask(task.Consent{Task: d.seqs["t1"], Stage: envelope.ApprovalPost, Asked: time.Now()})
	})
	d.look(n, "its answer needs an approval")
}

func TestAnIDThatADesktopMightTakeForMarkupIsNotShown(t *testing.T) {
	d := newDesktop(t)
	d.add("<b>&", task.Approval)
	d.look(d.post(), "One with an odd id: it needs an approval. See: mailboxd ps")
}

func TestWhatNeedsNobodyIsNoNotice(t *testing.T) {
	d := newDesktop(t)
	d.add("t1", task.Operator)
	d.add("t2", task.Capacity)
	d.add("t3", task.Paused, task.ChangeWindow)
	d.look(d.post(), "")
}

func TestTheFirstNoticeOfAQuietDayComesSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesktop(t)
		n := d.post()
		n.batchTime, n.rest = time.Second, 30*time.Second
		ctx, stop := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		serving.Go(func() {
			if err := n.Serve(ctx); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(24 * time.Hour)
		d.add("t1", task.Approval)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if text, err := os.ReadFile(d.board); !strings.Contains(string(text), "Task t1") {
			t.Errorf("after two seconds the notice says %q, %v; want one of t1", text, err)
		}
		stop()
		serving.Wait()
	})
}

func TestANoticeThatIsNotShownIsLoggedOnce(t *testing.T) {
	d := newDesktop(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	n := d.notices("echo >> '" + d.board + "'; exit 1")
	for _, id := range []envelope.ID{"t1", "t2"} {
		d.add(id, task.Approval)
		shown, err := n.look(ctx)
		if !shown || err == nil {
			t.Fatalf("look = %v, %v; want an error of the command", shown, err)
		}
		n.reportFault(err)
	}
	if got := strings.Count(d.log.String(), "exit status 1"); got != 1 {
		t.Errorf("logged %d times; want once:\n%s", got, d.log.String())
	}
}

func TestACommandThatHangsIsEnded(t *testing.T) {
	d := newDesktop(t)
	d.add("t1", task.Approval)
	n := d.notices("sleep 1000; echo survived")
	n.timeout = 50 * time.Millisecond
	if _, err := n.look(t.Context()); err == nil {
		t.Error("look = nil; want an error that the command was killed")
	}
}

func TestAPersonIsToldOfAQuestion(t *testing.T) {
	d := newDesktop(t)
	d.add("t1", task.Reply)
	d.look(d.post(), "Task t1: its agent asked a question. See: mailboxd show t1")
}
