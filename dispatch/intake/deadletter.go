package intake

import (
	"context"
	"time"

	"mailboxd/dispatch/exchange"
	"mailboxd/dispatch/store"
	"mailboxd/internal/fault"
	"mailboxd/internal/task"
)

// deadLetters returns the dead letters of lines that are no valid envelope, as they
// are written to a file. The ledger keeps them with the batch that they stood in, so
// a crash loses none, and nothing that keeps them from their file stops intake.
func deadLetters(submissions []*exchange.Submission) (lines [][]byte) {
	for _, c := range submissions {
		if store.IsLineError(c.Verdict.Findings.Kind()) {
			lines = append(lines, exchange.DeadLetter(c).Line())
		}
	}
	return lines
}

// DeadLettersAdded has the dead letters that the ledger keeps appended soon. Nothing is
// idle until that was tried. It never blocks.
func (in *Intake) DeadLettersAdded() {
	in.Queue.AddBusy()
	select {
	case in.DeadLetters <- struct{}{}:
	default: // it is asked for already
		in.Queue.Done()
	}
}

// AppendDeadLetters appends the dead letters that the ledger keeps to their file, until
// ctx ends. When that fails it is tried again after a pause.
func (in *Intake) AppendDeadLetters(ctx, work context.Context) {
	var again <-chan time.Time // nil unless the last attempt failed
	var appended int64
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-in.DeadLetters:
			asked = true
		case <-again:
			again = nil
		}
		if again == nil {
			var err error
			if appended, err = in.appendTheseDeadLetters(work, appended); err == nil {
				in.FaultLog.Clear(store.Rejecting)
			} else if ctx.Err() == nil {
				in.FaultLog.Report(store.Rejecting, task.Task{}, err)
				again = time.After(store.SettlePause)
			}
		}
		if asked {
			in.Queue.Done()
		}
	}
}

// fewDeadLetters is how many bytes of dead letters are appended at once.
const fewDeadLetters = 1 << 20

// appendTheseDeadLetters appends what the ledger keeps and has it forget that. Lines up
// to a Seq are in their file already, although the ledger could not be written; it returns
// up to which they are now. A crash between the two appends a line twice.
func (in *Intake) appendTheseDeadLetters(ctx context.Context, appended int64) (int64, error) {
	for {
		letters, err := in.Ledger.DeadLetters(ctx, fewDeadLetters)
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
		fault.Point("buried")
		err = in.Writer.Update(context.WithoutCancel(ctx), func(tx *store.Transaction) error { return tx.DropDeadLetters(appended) })
		if err != nil {
			return appended, err
		}
	}
}
