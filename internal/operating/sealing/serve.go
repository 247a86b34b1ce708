package sealing

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/stores/seal"
)

// A Sealer seals the events of a ledger while a daemon serves.
type Sealer struct {
	Options
	After time.Duration // how long an event is without a seal; a minute by default

	ledger *ledger.Ledger
	log    zerolog.Logger
	due    chan struct{} // has a token when there is a seal for the anchor
	sent   int64         // the time of the last seal that the anchor got
	fault  string        // the last error that was logged
}

// Open begins to seal. Without a key, events go on, and the log says it.
func Open(ctx context.Context, o Options, l *ledger.Ledger, log zerolog.Logger) (*Sealer, error) {
	s := &Sealer{Options: o, After: time.Minute, ledger: l, log: log, due: make(chan struct{}, 1)}
	known, err := o.anchored()
	s.report(err)
	w := seal.Writer{Signer: o.Signer, Sealed: s.announce}
	if len(known) > 0 {
		w.Known = known[len(known)-1]
		s.sent = w.Known.Time
	}
	seals, err := l.SealsSince(ctx, 0)
	if err != nil {
		return nil, err
	}
	head := w.Known
	if len(seals) > 0 {
		head = seals[len(seals)-1]
	}
	s.report(o.prepare(head))
	s.report(o.Problem(head.Key != ""))
	return s, l.SealWith(ctx, w)
}

func (s *Sealer) announce() {
	select {
	case s.due <- struct{}{}:
	default: // it will be sent with the one before
	}
}

// report logs an error once in a row.
func (s *Sealer) report(err error) {
	switch {
	case err == nil || errors.Is(err, ledger.ErrClosed) || errors.Is(err, context.Canceled):
		return
	case err.Error() != s.fault:
		s.log.Error().Err(err).Msg("events are not sealed, or not anchored; mailboxd doctor says more")
	}
	s.fault = err.Error()
}

// Serve seals events that are a minute old, and sends seals to the anchor, until ctx ends.
func (s *Sealer) Serve(ctx context.Context) error {
	for ctx.Err() == nil {
		later := time.NewTimer(s.After)
		sendUntil(ctx, s, later.C)
		later.Stop()
		changed := s.ledger.Changed() // before Seal, so that no event after it is missed
		s.report(s.ledger.Seal(ctx))
		sendUntil(ctx, s, changed)
	}
	return nil
}

// sendUntil sends seals to the anchor until something happens, or ctx ends.
func sendUntil[T any](ctx context.Context, s *Sealer, happens <-chan T) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-happens:
			return
		case <-s.due:
			s.report(s.sendNew(ctx))
		}
	}
}

// sendNew sends the seals that the anchor doesn't have.
func (s *Sealer) sendNew(ctx context.Context) error {
	seals, err := s.ledger.SealsSince(ctx, s.sent)
	if err != nil || len(seals) == 0 {
		return err
	}
	if err := s.send(ctx, seals); err != nil {
		return err
	}
	s.sent = seals[len(seals)-1].Time
	return nil
}

// Close seals what is left, and sends it to the anchor. The ledger is open until then.
func (s *Sealer) Close() {
	ctx, stop := context.WithTimeout(context.Background(), 2*patience)
	defer stop()
	s.report(errors.Join(s.ledger.Seal(ctx), s.sendNew(ctx)))
}
