package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

// ledgerTimeout is the limit of verifying the ledger. A very large one takes longer.
const ledgerTimeout = time.Minute

func (d *checker) ledger(ctx context.Context) {
	file := filepath.Join(d.State, "ledger.db")
	ctx, stop := context.WithTimeout(ctx, ledgerTimeout)
	defer stop()
	memory, err := ledger.OpenReader(file)
	if errors.Is(err, fs.ErrNotExist) {
		d.noLedger()
		return
	}
	if err == nil {
		err = errors.Join(memory.Verify(ctx), d.recovered(ctx, memory), d.callbacks(ctx, memory), memory.Close())
	}
	aside, _ := filepath.Glob(file + ".unreadable-*Z") // the pattern is good
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		d.warn("ledger", "sqlite3 "+term.ShellWord(file)+" 'PRAGMA quick_check'", "too large to check in %s", ledgerTimeout)
	case errors.Is(err, ledger.ErrNewer):
		d.bad("ledger", "install the newer mailboxd again", "%v", err)
	case err != nil:
		d.bad("ledger", "mailboxd serve", "%v; serve keeps an unreadable one aside, begins another and holds what may have run", err)
	case len(aside) > 0:
		d.warn("ledger", "rm "+term.ShellWord(aside[0])+"*", "integrity check passed; an earlier, unreadable one is kept as %s", aside[0])
	default:
		d.good("ledger", "integrity check passed")
	}
}

// noLedger distinguishes a lost ledger from one that was never made.
func (d *checker) noLedger() {
	_, err := os.Stat(d.State) // or OpenState would make it
	var traces []string
	var state *mailbox.State
	if err == nil {
		state, err = mailbox.OpenState(d.State, d.Root)
	}
	if err == nil {
		traces, err = state.Traces()
		err = errors.Join(err, state.Close())
	}
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		d.bad("ledger", "ls -l "+term.ShellWord(d.State), "%v", err)
	case len(traces) > 0:
		d.bad("ledger", "put it back from a backup, or: mailboxd serve",
			"it is missing, although %s has %s; serve begins another and holds what may have run", d.State, strings.Join(traces, " and "))
	default:
		d.good("ledger", "there is none yet; serve makes it")
	}
}

// callbacks counts the tasks whose callback failed and is not tried again by itself.
func (d *checker) callbacks(ctx context.Context, memory *ledger.Reader) error {
	rows, err := memory.Tasks(ctx, ledger.Filter{States: []task.State{task.Done}, CallbackFailed: true, All: true, Limit: maxCallbacks})
	failed := map[envelope.ID]bool{}
	for _, row := range rows {
		if abandoned := false; err == nil && !failed[row.ID] {
			if abandoned, err = isAbandoned(ctx, memory, row); abandoned {
				failed[row.ID] = true
			}
		}
	}
	if err != nil || len(failed) == 0 {
		return err
	}
	words := "1 task has a callback that failed and is not tried again"
	if len(failed) > 1 {
		words = fmt.Sprintf("%d tasks have a callback that failed and is not tried again", len(failed))
	}
	if len(rows) == maxCallbacks {
		words = "at least " + words
	}
	d.note(Finding{
		Check: "ledger", Subject: "callbacks", State: Warn,
		Finding: words + "; one is " + string(slices.Min(slices.Collect(maps.Keys(failed)))),
		Hint:    "mailboxd ps, and then for each: mailboxd show ID, which says why, and mailboxd release ID, which tries again",
	})
	return nil
}

// maxCallbacks limits how many failed callbacks are counted.
const maxCallbacks = 1000

// isAbandoned reports whether the retries of a failed callback have ended.
func isAbandoned(ctx context.Context, memory *ledger.Reader, row task.Task) (bool, error) {
	events, err := memory.History(ctx, row.ID, 1000)
	for _, e := range slices.Backward(events) {
		if e.Revision == row.Revision && (e.Kind == task.KindCallbackFailed || e.Kind == task.KindCallbackAbandoned) {
			return e.Kind == task.KindCallbackAbandoned, err
		}
	}
	return err == nil, err // retention has removed the event
}

// recovered counts the tasks that are held since a ledger was lost or restored.
func (d *checker) recovered(ctx context.Context, memory *ledger.Reader) error {
	held, err := memory.Tasks(ctx, ledger.Filter{States: []task.State{task.Held}})
	held = slices.DeleteFunc(held, func(t task.Task) bool { return !slices.Contains(t.Reasons, task.Recovered) })
	if len(held) == 0 {
		return err
	}
	words := "1 task may have run before the ledger was lost or restored, and waits"
	if len(held) > 1 {
		words = fmt.Sprintf("%d tasks may have run before the ledger was lost or restored, and wait", len(held))
	}
	d.note(Finding{
		Check: "ledger", Subject: "recovered", State: Warn, Finding: words + "; one is " + string(held[0].ID),
		Hint: "mailboxd ps --state held, and then for each: mailboxd release ID, which runs it, or mailboxd cancel ID",
	})
	return err
}

// seals checks that something can sign events.
func (d *checker) seals(ctx context.Context) {
	r, err := ledger.OpenReader(filepath.Join(d.State, "ledger.db"))
	if err != nil {
		return // ledger says it
	}
	seals, err := r.SealsSince(ctx, 0)
	if err = errors.Join(err, r.Close()); err == nil {
		err = d.Seal.Problem(len(seals) > 0)
	}
	switch {
	case err != nil:
		d.bad("seals", "mailboxd audit", "new events are not sealed: %v", err)
	case len(seals) == 0:
		d.good("seals", "no event is sealed yet; serve does it")
	default:
		d.good("seals", "events up to %d are sealed", seals[len(seals)-1].Last)
	}
}
