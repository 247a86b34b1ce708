package dispatch

import (
	"context"
	"time"

	"mailboxd/internal/fault"
	"mailboxd/internal/task"
)

// deadLetters returns the dead letters of lines that are no valid envelope, as they
// are written to a file. The ledger keeps them with the batch that they stood in, so
// a crash loses none, and nothing that keeps them from their file stops intake.
func deadLetters(submissions []*submission) (lines [][]byte) {
	for _, c := range submissions {
		if shapeless(c.verdict.Findings.Kind()) {
			lines = append(lines, deadLetter(c).Line())
		}
	}
	return lines
}

// deadLettersAdded has the dead letters that the ledger keeps appended soon. Nothing is
// idle until that was tried. It never blocks.
func (in *intake) deadLettersAdded() {
	in.queue.AddBusy()
	select {
	case in.deadLetters <- struct{}{}:
	default: // it is asked for already
		in.queue.Done()
	}
}

// appendDeadLetters appends the dead letters that the ledger keeps to their file, until
// ctx ends. When that fails it is tried again after a pause.
func (in *intake) appendDeadLetters(ctx, work context.Context) {
	var again <-chan time.Time // nil unless the last attempt failed
	var appended int64
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-in.deadLetters:
			asked = true
		case <-again:
			again = nil
		}
		if again == nil {
			var err error
			if appended, err = in.appendTheseDeadLetters(work, appended); err == nil {
				in.faults.clear(rejecting)
			} else if ctx.Err() == nil {
				in.faults.report(rejecting, task.Task{}, err)
				again = time.After(settlePause)
			}
		}
		if asked {
			in.queue.Done()
		}
	}
}

// fewDeadLetters is how many bytes of dead letters are appended at once.
const fewDeadLetters = 1 << 20

// appendTheseDeadLetters appends what the ledger keeps and has it forget that. Lines up
// to a Seq are in their file already, although the ledger could not be told; it returns
// up to which they are now. A crash between the two appends a line twice.
func (in *intake) appendTheseDeadLetters(ctx context.Context, appended int64) (int64, error) {
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
		err = in.writer.update(context.WithoutCancel(ctx), func(tx *transaction) error { return tx.DropDeadLetters(appended) })
		if err != nil {
			return appended, err
		}
	}
}
