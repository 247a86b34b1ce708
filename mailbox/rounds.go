package mailbox

import "time"

const (
	turnTime  = 100 * time.Millisecond // how long the lines of one batch may delay other files
	firstTurn = 64                     // lines of the first batch of a file, when its cost is unknown
	leastTurn = 32                     // least lines of a batch, because a batch has fixed costs
	lookShare = 3                      // files are read for this multiple of the time of a look before the next look
)

// rounds give files fair turns. In a round, each ready file has one turn. Then the Tail
// looks for changed files, so that a long file doesn't delay them. The zero value is before
// the first look.
type rounds struct {
	left   int           // turns left in the round
	looked time.Time     // end of the last look
	took   time.Duration // its duration
	begun  time.Time     // when the pending batch was returned
}

// over reports whether it is time for a look. If a look takes long, as with many files,
// several rounds come first.
func (r *rounds) over() bool {
	return r.left <= 0 && time.Since(r.looked) >= lookShare*r.took
}

// begin begins a round with a number of turns, after a look that began at looking.
func (r *rounds) begin(turns int, looking time.Time) {
	r.left, r.looked = turns, time.Now()
	r.took = r.looked.Sub(looking)
}

// most returns the line limit of the source's next batch.
func (s *source) most(opts TailOptions) int {
	if s.lines == 0 {
		s.lines = firstTurn
	}
	return min(s.lines, opts.BatchLines)
}

// spent adapts the size of later batches to a turn: took is the time from the return of a
// batch until Done.
func (s *source) spent(took time.Duration, lines int, opts TailOptions) {
	switch {
	case took > turnTime:
		s.lines = max(leastTurn, int(int64(lines)*int64(turnTime)/int64(took)))
	case took <= turnTime/2 && lines >= s.lines:
		s.lines = min(2*s.lines, opts.BatchLines)
	}
}
