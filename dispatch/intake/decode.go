package intake

import (
	"runtime"
	"slices"
	"sync"

	"mailboxd/dispatch/exchange"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/mailbox"
)

// minPart is the number of lines or submissions below which another goroutine doesn't pay.
const minPart = 64

// decode makes submissions of lines. It does not query the ledger, so earlier lines may be
// uncommitted.
func (in *Intake) decode(lines []mailbox.Line, processors int) []*exchange.Submission {
	parts := make([][]*exchange.Submission, processors)
	inParts(lines, processors, func(n int, part []mailbox.Line) { parts[n] = in.decodeAll(part) })
	return slices.Concat(parts...)
}

func (in *Intake) decodeAll(lines []mailbox.Line) []*exchange.Submission {
	submissions := make([]*exchange.Submission, 0, len(lines))
	var pieces []dialect.Piece // one buffer for all lines
	for _, line := range lines {
		pieces = in.pieces(pieces[:0], line)
		for _, piece := range pieces {
			c := &exchange.Submission{Line: line, Task: piece.Message.Request, DecodeFindings: piece.Findings}
			if piece.Message.Dialect != envelope.AINL {
				c.Inbound = &exchange.InboundMessage{Message: piece.Message}
				c.Message = &c.Inbound.Message
				c.Task.Raw, c.Task.Hash = c.Message.Raw, c.Message.Hash
			}
			submissions = append(submissions, c)
		}
	}
	return submissions
}

// pieces appends the envelopes of a line. Of a line that is too long only the head and the
// outline were kept, which suffices to find its sender.
func (in *Intake) pieces(to []dialect.Piece, line mailbox.Line) []dialect.Piece {
	if !line.TooLong {
		return dialect.AppendRead(to, line.Raw, in.Opts.Reading)
	}
	return append(to, dialect.TooLong(line.Long(), in.Opts.Tail.MaxLine))
}

// inParts splits a long list into numbered parts, one for each processor, and calls do for each
// part in its own goroutine.
func inParts[T any](list []T, processors int, do func(n int, part []T)) {
	share := max(minPart, (len(list)+processors-1)/processors)
	if len(list) <= share {
		do(0, list)
		return
	}
	var working sync.WaitGroup
	for n := 0; n*share < len(list); n++ {
		part := list[n*share : min((n+1)*share, len(list))]
		working.Go(func() { do(n, part) })
	}
	working.Wait()
}

// A nextBatch is the batch behind the current one, decoded while that is committed.
type nextBatch struct {
	lines       []mailbox.Line
	submissions []*exchange.Submission
	decoding    sync.WaitGroup
}

// decodeAhead begins to decode the batch behind the one that Next returned, if there is one.
// The commit uses one processor; decoding on the others saves a fifth of the time of a backlog.
func (in *Intake) decodeAhead() *nextBatch {
	batch, ok := in.Tail.Ahead()
	if !ok {
		return nil
	}
	c := &nextBatch{lines: batch.Lines}
	c.decoding.Go(func() { c.submissions = in.decode(c.lines, max(1, runtime.GOMAXPROCS(0)-1)) })
	return c
}

// wait blocks until the batch is decoded.
func (c *nextBatch) wait() {
	if c != nil {
		c.decoding.Wait()
	}
}

// submissionsOf returns the submissions of a batch, if it is this one.
func (c *nextBatch) submissionsOf(batch mailbox.Batch) ([]*exchange.Submission, bool) {
	if c == nil || len(batch.Lines) == 0 || &c.lines[0] != &batch.Lines[0] {
		return nil, false
	}
	c.wait()
	return c.submissions, true
}
