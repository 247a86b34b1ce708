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

// few is how many lines or submissions are not worth another goroutine.
const few = 64

// decode makes submissions of lines. It asks nobody, so it may come before the lines
// ahead of these are written down.
func (in *Intake) decode(lines []mailbox.Line, processors int) []*exchange.Submission {
	parts := make([][]*exchange.Submission, processors)
	inParts(lines, processors, func(n int, part []mailbox.Line) { parts[n] = in.decodeAll(part) })
	return slices.Concat(parts...)
}

func (in *Intake) decodeAll(lines []mailbox.Line) []*exchange.Submission {
	submissions := make([]*exchange.Submission, 0, len(lines))
	var pieces []dialect.Piece // the same room for each line
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

// pieces appends what a line is made of. Of a line that is too long only the head and
// the outline were kept: enough to find out who must be notified.
func (in *Intake) pieces(to []dialect.Piece, line mailbox.Line) []dialect.Piece {
	if !line.TooLong {
		return dialect.AppendRead(to, line.Raw, in.Opts.Reading)
	}
	return append(to, dialect.TooLong(line.Long(), in.Opts.Tail.MaxLine))
}

// inParts hands a long list out in parts, each with its number, to so
// many goroutines.
func inParts[T any](list []T, processors int, do func(n int, part []T)) {
	share := max(few, (len(list)+processors-1)/processors)
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

// A coming is the batch after one that is being written down, decoded meanwhile.
type coming struct {
	lines       []mailbox.Line
	submissions []*exchange.Submission
	decoding    sync.WaitGroup
}

// decodeAhead begins with the batch after the one that Next returned, if there
// is one. Writing down keeps one processor busy; the others decode, which was a
// fifth of the time that a backlog took.
func (in *Intake) decodeAhead() *coming {
	batch, ok := in.Tail.Ahead()
	if !ok {
		return nil
	}
	c := &coming{lines: batch.Lines}
	c.decoding.Go(func() { c.submissions = in.decode(c.lines, max(1, runtime.GOMAXPROCS(0)-1)) })
	return c
}

// wait blocks until nothing is being decoded.
func (c *coming) wait() {
	if c != nil {
		c.decoding.Wait()
	}
}

// submissionsOf returns the submissions of a batch, if that is the one.
func (c *coming) submissionsOf(batch mailbox.Batch) ([]*exchange.Submission, bool) {
	if c == nil || len(batch.Lines) == 0 || &c.lines[0] != &batch.Lines[0] {
		return nil, false
	}
	c.wait()
	return c.submissions, true
}
