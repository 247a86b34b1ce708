package intake

import (
	"context"
	"time"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/store"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/fault"
)

// deadLetters returns the dead letters of lines that are no valid envelope, in their form in
// the file. The ledger commits them with their batch, so a crash loses none, and an error of
// their file does not stop intake.
func deadLetters(submissions []*exchange.Submission) (lines [][]byte) {
	for _, c := range submissions {
		if c.Verdict.Findings.Kind().IsLineError() {
			lines = append(lines, exchange.DeadLetter(c).Line())
		}
	}
	return lines
}

// DeadLettersAdded starts an append of the ledger's dead letters. The engine isn't idle until
// that was tried. It never blocks.
func (in *Intake) DeadLettersAdded() {
	in.Queue.AddBusy()
	select {
	case in.DeadLetters <- struct{}{}:
	default: // a signal is pending already
		in.Queue.Done()
	}
}

// AppendDeadLetters appends the ledger's dead letters to their file, until ctx ends. It retries
// a failed append after a pause.
func (in *Intake) AppendDeadLetters(ctx, work context.Context) {
	var retry <-chan time.Time // nil unless the last attempt failed
	var appended int64
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-in.DeadLetters:
			asked = true
		case <-retry:
			retry = nil
		}
		if retry == nil {
			var err error
			if appended, err = in.flushDeadLetters(work, appended); err == nil {
				in.FaultLog.Clear(store.Rejecting)
			} else if ctx.Err() == nil {
				in.FaultLog.Report(store.Rejecting, task.Task{}, err)
				retry = time.After(store.SettlePause)
			}
		}
		if asked {
			in.Queue.Done()
		}
	}
}

// deadLetterBatchBytes is how many bytes of dead letters are appended at once.
const deadLetterBatchBytes = 1 << 20

// flushDeadLetters appends the dead letters to their file and removes them from the ledger.
// Letters up to the Seq appended are in the file already, from an attempt that failed at the
// ledger; it returns the new Seq. A crash between the two steps appends a line twice.
func (in *Intake) flushDeadLetters(ctx context.Context, appended int64) (int64, error) {
	for {
		letters, err := in.Ledger.DeadLetters(ctx, deadLetterBatchBytes)
		if err != nil || len(letters) == 0 {
			return appended, err
		}
		var lines [][]byte
		for _, l := range letters {
			if l.Seq > appended {
				lines = append(lines, l.Line)
			}
		}
		if err := in.Box.AppendDeadLetters(time.Now(), lines); err != nil {
			return appended, err
		}
		appended = letters[len(letters)-1].Seq
		fault.Point("dead_letters_written")
		err = in.Writer.Update(context.WithoutCancel(ctx), func(tx *store.Transaction) error { return tx.DropDeadLetters(appended) })
		if err != nil {
			return appended, err
		}
	}
}
