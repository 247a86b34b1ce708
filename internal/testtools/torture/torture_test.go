package torture_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"mailboxd/internal/testtools/programs"
	"mailboxd/internal/testtools/slowtest"
)

// work are the goroutines that wait for daemons; nothing else is started.
var work sync.WaitGroup

// A tally says what was done to the daemon.
type tally struct {
	lives, kills int
	keepers      int // SIGKILLs of keepers by us; those at their fault points are in the log
	killed       []span
	peak         int // the most memory a daemon had, in KiB
	began        time.Time
}

func TestNothingIsLostHalfOrDoubleUnderTorture(t *testing.T) {
	torture(t, newSite(t))
}

// The same while ledgers are removed and damaged, and other objects stand where
// side files belong: nothing is half, nothing runs twice, and every task ends.
func TestNothingIsHalfOrDoubleWhenStateIsDamaged(t *testing.T) {
	slowtest.Require(t, "it kills daemons and damages their state for seconds")
	s := newSite(t)
	s.damage = &damage{}
	torture(t, s)
	t.Logf("seed %d: %v", *seed, s.damage)
}

// torture kills the daemons of a site for a while, and checks what comes of it.
func torture(t *testing.T, s *site) {
	slowtest.SkipShort(t, "it kills daemons for seconds")
	b := newBook()
	t.Logf("seed %d", *seed)
	sum := tally{began: time.Now()}
	ctx, stop := context.WithTimeout(t.Context(), *duration)
	defer stop()
	readerCtx, stopReader := context.WithCancel(t.Context())
	defer stopReader()
	var reader errgroup.Group
	reader.Go(func() error { return s.watchResults(readerCtx, b) })
	writers, ctx := errgroup.WithContext(ctx)
	for _, w := range registry(s, b) {
		writers.Go(func() error { return w.write(ctx) })
	}
	person := &approver{site: s, book: b, chance: chance(1 << 34)}
	writers.Go(func() error { return person.agree(ctx) })
	writers.Go(func() error { return s.killSandboxes(ctx, b) })
	writers.Go(func() error { defer stop(); return s.killAgainAndAgain(ctx, b, &sum) })
	if err := writers.Wait(); err != nil {
		t.Errorf("torture: %v", err)
	}
	s.settle(t, person, &sum)
	stopReader()
	if err := reader.Wait(); err != nil {
		t.Errorf("a concurrent reader: %v", err)
	}
	s.check(t, b)
	deaths, err := s.deaths()
	if err != nil {
		t.Fatal(err)
	}
	s.checkLost(t, b, slices.Concat(deaths, sum.killed, s.damage.spans()))
	s.report(t, b, sum)
}

// writers are the programs that append: two with a file of their own, one that rotates it, and
// two that share one.
func registry(s *site, b *book) []*writer {
	writers := []*writer{
		{name: "a", into: "a", own: true},
		{name: "b", into: "b", own: true},
		{name: "c", into: "c", own: true, rotates: true},
		{name: "d", into: "shared"},
		{name: "e", into: "shared"},
	}
	for i, w := range writers {
		w.site, w.book, w.chance, w.asks = s, b, chance(uint64(i)), true
	}
	return writers
}

// killAgainAndAgain starts the daemon and kills it: every other time at a
// random instant, and else at the fault points in turn.
func (s *site) killAgainAndAgain(ctx context.Context, b *book, sum *tally) error {
	points, err := faultPoints()
	if err != nil {
		return err
	}
	points = slices.DeleteFunc(points, func(p point) bool { return slices.Contains(beginnings, p.name) || slices.Contains(exports, p.name) })
	dice := chance(1 << 32)
	dice.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	for turn := 0; ctx.Err() == nil && (*kills == 0 || sum.kills < *kills); turn++ {
		fault, while := "", time.Duration(dice.IntN(400))*time.Millisecond
		p := points[turn/2%len(points)]
		if turn%2 == 1 {
			fault = fmt.Sprintf("%s:%d", p.name, nth(dice))
			while = 1500 * time.Millisecond
		}
		if turn%2 == 1 && p.keeper || dice.IntN(8) == 0 {
			s.killKeepers(sum) // the next one has the fault
		}
		if err := s.damage.some(s, b, dice); err != nil {
			return err
		}
		if err := s.oneLife(ctx, fault, while, sum); err != nil {
			return err
		}
	}
	return nil
}

// nth is which crossing is deadly: mostly one of the first.
func nth(dice *rand.Rand) int { return 1 + dice.IntN(4)*dice.IntN(4) }

func (s *site) oneLife(ctx context.Context, fault string, while time.Duration, sum *tally) error {
	v, err := s.start(fault)
	if err != nil {
		return err
	}
	sum.lives++
	sum.peak = max(sum.peak, v.live(ctx, while))
	if v.failed() {
		return fmt.Errorf("the daemon gave up: %w; see %s", v.err, s.path("log"))
	}
	sum.kills++
	return nil
}

// killKeepers kills what outlives a daemon.
func (s *site) killKeepers(sum *tally) {
	_, keepers := s.processes()
	from := time.Now()
	programs.Kill(keepers)
	if len(keepers) > 0 {
		sum.killed = append(sum.killed, span{from, time.Now()})
	}
	sum.keepers += len(keepers)
}

// settle has the daemon do what is left, in peace, and a person decide what
// waits for one.
func (s *site) settle(t *testing.T, person *approver, sum *tally) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	if err := s.damage.clear(s); err != nil {
		t.Fatal(err)
	}
	v, err := s.start("")
	if err != nil {
		t.Fatal(err)
	}
	sum.lives++
	if err := person.finish(ctx); err != nil {
		t.Errorf("agree to what is left: %v", err)
	}
	v.live(ctx, 0)
	s.drain(ctx, t, sum)
}

// drain has a daemon do all that waits for nobody.
func (s *site) drain(ctx context.Context, t *testing.T, sum *tally) {
	t.Helper()
	v, err := s.start("", "--once")
	if err != nil {
		t.Fatal(err)
	}
	sum.lives++
	select {
	case <-v.gone:
	case <-ctx.Done():
		t.Errorf("the daemon was not done three minutes after the last kill")
	}
	v.live(ctx, 0)
	if v.err != nil {
		t.Errorf("the last daemon: %v", v.err)
	}
}
