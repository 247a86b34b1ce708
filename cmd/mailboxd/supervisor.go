package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"

	"mailboxd/internal/config"
	"mailboxd/internal/ledger"
)

// A supervisor is whoever started us and wants to know how we are: systemd, by
// its notify socket. Without one it is told nothing, and does nothing.
type supervisor struct {
	grace time.Duration // that running agents get when we stop; 0: they go on
	log   zerolog.Logger
}

func newSupervisor(cfg config.Config, log zerolog.Logger) supervisor {
	s := supervisor{log: log}
	if cfg.StopAgentsOnExit {
		s.grace = cfg.Limits.ShutdownGrace
	}
	return s
}

// serve tells the supervisor that we are ready, then as often as it wants
// that the ledger answers, and at the end of ctx that we stop.
func (s supervisor) serve(ctx context.Context, ready <-chan struct{}, memory *ledger.Ledger) error {
	select {
	case <-ready:
		s.notify(daemon.SdNotifyReady)
	case <-ctx.Done():
	}
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		s.log.Warn().Err(err).Msg("the supervisor's watchdog cannot be fed")
	}
	if every > 0 {
		probe := func() { _ = memory.Update(ctx, func(*ledger.Tx) error { return nil }) }
		feedWatchdog(ctx, every/2, probe, func() { s.notify(daemon.SdNotifyWatchdog) })
	}
	<-ctx.Done()
	s.notify(daemon.SdNotifyStopping + fmt.Sprintf("\nEXTEND_TIMEOUT_USEC=%d", (s.grace+stopTime).Microseconds()))
	return nil
}

// stopTime is what we need at most to stop, besides the grace of agents.
const stopTime = 10 * time.Second

// feedWatchdog feeds the watchdog each time that the probe returns, until ctx ends: a
// transaction that does not come back starves it. One that fails does not. A
// full disk or a busy ledger is over by itself, and a new process would see it
// too.
func feedWatchdog(ctx context.Context, every time.Duration, probe, fed func()) {
	for {
		probe()
		if ctx.Err() != nil {
			return
		}
		fed()
		next := time.Now().Truncate(every).Add(every) // on the clock, when others wake up too
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(next)):
		}
	}
}

// reloading tells that the configuration is being read again, and returns what
// tells that it was.
func (s supervisor) reloading() (done func()) {
	s.notify(daemon.SdNotifyReloading + "\n" + strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
	return func() { s.notify(daemon.SdNotifyReady) }
}

func (s supervisor) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.Warn().Err(err).Msg("the supervisor could not be told")
	}
}
