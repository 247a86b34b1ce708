package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/running/carrier"
)

// A stub is a runner that starts no process and has its journal in memory: a run ends when it begins, or at
// release.
type stub struct {
	name  string
	slots int
	link  *carrier.Runner
	work  *errgroup.Group // has all that waits for the owner
	begun time.Time

	mu      sync.Mutex
	machine *fleet.Runner
	journal int64         // changes
	holds   bool          // runs go on until release
	held    []fleet.Token // those that go on
}

// stubDigest is what a stub has as the digest of its agent.
var stubDigest = strings.Repeat("0", 64)

// withStubs calls do with stubs, and ends them. Its context ends with the first error of one of them.
func withStubs(ctx context.Context, h *hub, names []string, slots int, holds bool, do func(context.Context, []*stub) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	work, ctx := errgroup.WithContext(ctx)
	all := make([]*stub, len(names))
	err := sideBySide(ctx, together, len(names), func(n int) (err error) {
		all[n], err = startStub(ctx, work, h, names[n], slots, holds)
		return err
	})
	if err == nil {
		err = do(ctx, all)
	}
	end()
	err = errors.Join(err, work.Wait())
	for _, s := range all {
		if s != nil {
			s.link.Close()
		}
	}
	return err
}

// startStub connects a stub, and announces its agent.
func startStub(ctx context.Context, work *errgroup.Group, h *hub, name string, slots int, holds bool) (*stub, error) {
	o, err := h.connection(h.runnerFile(name))
	if err != nil {
		return nil, err
	}
	s := &stub{name: name, slots: slots, work: work, begun: time.Now(), holds: holds, journal: 1}
	s.machine, _ = fleet.NewRunner(name, 0, nil)
	if s.link, err = carrier.DialRunner(carrier.RunnerOptions{Options: o, Name: name}); err != nil {
		return nil, err
	}
	for {
		reply, err := s.hello(ctx)
		switch {
		case reply.Refused != "":
			err = errors.New(reply.Refused)
		case errors.Is(err, carrier.ErrNoResponders) || errors.Is(err, carrier.ErrAway): // not yet
			err = sleep(ctx, 50*time.Millisecond)
		case err == nil:
			s.work.Go(func() error { return s.claim(ctx) })
			return s, nil
		}
		if err != nil {
			s.link.Close()
			return nil, fmt.Errorf("announce runner %s: %w", name, err)
		}
	}
}

func (s *stub) hello(ctx context.Context) (fleet.Reply, error) {
	ctx, stop := context.WithTimeout(ctx, fleet.ClaimWait)
	defer stop()
	s.mu.Lock()
	m := fleet.Hello{Report: s.report(), Announcement: fleet.Announcement{
		Version: "bench", Slots: s.slots,
		Agents: []fleet.Agent{{ID: "bench", Digest: stubDigest, Concurrency: s.slots, MaxSensitivity: "restricted"}},
	}}
	s.mu.Unlock()
	return s.link.Hello(ctx, m)
}

func (s *stub) clock() fleet.Clock { return fleet.Clock{Boot: time.Since(s.begun), Wall: time.Now()} }

// report says what the stub has. The caller holds mu.
func (s *stub) report() fleet.Report {
	r := s.machine.Report(s.clock())
	r.Runner, r.Incarnation, r.Journal = s.name, s.name, s.journal
	return r
}

// claim asks for jobs until ctx ends, once in fleet.ClaimWait if there are none.
func (s *stub) claim(ctx context.Context) error {
	for n := 0; ; n++ {
		sent := time.Now()
		s.mu.Lock()
		free := s.slots - s.machine.Busy()
		m := s.machine.Claim(s.clock(), s.report(), fmt.Sprint(n), min(free, fleet.MaxJobs), map[string]int{"bench": free})
		s.mu.Unlock()
		reply, err := s.link.Claim(ctx, m)
		if err == nil {
			s.advance(ctx, func(m *fleet.Runner) []fleet.Step { return m.Reply(s.clock(), reply) })
		}
		if err == nil && len(reply.Jobs)+len(reply.Settled) == 0 {
			err = sleep(ctx, fleet.ClaimWait-time.Since(sent))
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("claim of runner %s: %w", s.name, err)
		}
	}
}

// advance tells the state machine something, and does what follows.
func (s *stub) advance(ctx context.Context, tell func(*fleet.Runner) []fleet.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for steps := tell(s.machine); len(steps) > 0; {
		step := steps[0]
		steps = steps[1:]
		switch step.Kind {
		case fleet.StepWrite:
			s.journal++
			steps = append(steps, s.machine.Wrote(s.clock(), step.Token, step.State)...)
		case fleet.StepStart:
			if s.holds {
				s.held = append(s.held, step.Token)
				continue
			}
			steps = append(steps, s.machine.Ended(step.Token)...)
		case fleet.StepSend:
			s.work.Go(func() error { return s.deliver(ctx, step.Token) })
		case fleet.StepForget:
			s.journal++
		}
	}
}

// release ends all runs, and those that begin later.
func (s *stub) release(ctx context.Context) {
	s.advance(ctx, func(m *fleet.Runner) (steps []fleet.Step) {
		s.holds = false
		for _, token := range s.held {
			steps = slices.Concat(steps, m.Ended(token))
		}
		return steps
	})
}

// running returns how many runs go on.
func (s *stub) running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

// deliver sends the outcome of a run until the owner has it.
func (s *stub) deliver(ctx context.Context, token fleet.Token) error {
	outcome, err := fleet.EncodeLarge(fleet.Outcome{Result: envelope.Result{Status: envelope.OK}})
	if err != nil {
		return err
	}
	for {
		s.mu.Lock()
		m := fleet.Done{Report: s.report(), Token: token, Outcome: outcome}
		s.mu.Unlock()
		reply, _, err := s.link.Done(ctx, m)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("deliver %s: %w", token, err)
		case reply.Refused+reply.Fenced != "":
			return fmt.Errorf("deliver %s: %s", token, reply.Refused+reply.Fenced)
		case reply.Settled:
			s.advance(ctx, func(m *fleet.Runner) []fleet.Step { return m.Answered(reply) })
			return nil
		}
		if sleep(ctx, 100*time.Millisecond) != nil {
			return nil
		}
	}
}
