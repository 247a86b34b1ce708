package mailbox

import "time"

const (
	turnTime  = 100 * time.Millisecond // how long the lines of one batch may keep other files waiting
	firstTurn = 64                     // lines of the first batch of a file, whose cost is not known yet
	leastTurn = 32                     // lines that a batch may have whatever they cost: a batch has costs of its own
	lookShare = 3                      // times as long as a look took, files are read before the next one
)

// rounds has files take fair turns. In a round each file that is ready has one
// turn. Then the Tail looks for files that changed meanwhile, so that a long file
// does not keep them waiting. The zero value is before the first look.
type rounds struct {
	left   int           // turns until the round is over
	looked time.Time     // when the last look was over
	took   time.Duration // how long it took
	begun  time.Time     // when the pending batch was handed out
}

// over reports whether it is time to look: not after each round where a look takes
// long, as it does with many files.
func (r *rounds) over() bool {
	return r.left <= 0 && time.Since(r.looked) >= lookShare*r.took
}

// begin begins a round of so many turns, after a look that began at a time.
func (r *rounds) begin(turns int, looking time.Time) {
	r.left, r.looked = turns, time.Now()
	r.took = r.looked.Sub(looking)
}

// most returns how many lines the next batch of the source may have.
func (s *source) most(opts TailOptions) int {
	if s.lines == 0 {
		s.lines = firstTurn
	}
	return min(s.lines, opts.BatchLines)
}

// spent says how long so many lines took, from when they were handed out until
// they were written down. Later batches have as many as fit into a turn.
func (s *source) spent(took time.Duration, lines int, opts TailOptions) {
	switch {
	case took > turnTime:
		s.lines = max(leastTurn, int(int64(lines)*int64(turnTime)/int64(took)))
	case took <= turnTime/2 && lines >= s.lines:
		s.lines = min(2*s.lines, opts.BatchLines)
	}
}
