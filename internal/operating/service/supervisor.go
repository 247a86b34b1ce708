package service

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"
)

// A Supervisor is systemd, reached by its notify socket. Without one its methods do
// nothing.
type Supervisor struct {
	Grace time.Duration // of running agents at a stop; 0: they go on
	Log   zerolog.Logger
}

// Serve notifies the supervisor that the daemon is ready, then regularly that probe returns, and
// at the end of ctx that it stops.
func (s Supervisor) Serve(ctx context.Context, ready <-chan struct{}, probe func()) error {
	select {
	case <-ready:
		s.notify(daemon.SdNotifyReady)
	case <-ctx.Done():
	}
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		s.Log.Warn().Err(err).Msg("watchdog not notified")
	}
	if every > 0 {
		feedWatchdog(ctx, every/2, probe, func() { s.notify(daemon.SdNotifyWatchdog) })
	}
	<-ctx.Done()
	s.notify(daemon.SdNotifyStopping + fmt.Sprintf("\nEXTEND_TIMEOUT_USEC=%d", (s.Grace+stopTime).Microseconds()))
	return nil
}

// stopTime is the most that a stop takes besides the grace of agents.
const stopTime = 10 * time.Second

// feedWatchdog notifies the watchdog each time that the probe returns, until ctx ends. A
// transaction that hangs misses it. One that fails does not, since a full disk or a busy
// ledger recovers without a new process.
func feedWatchdog(ctx context.Context, every time.Duration, probe, notify func()) {
	for {
		probe()
		if ctx.Err() != nil {
			return
		}
		notify()
		next := time.Now().Truncate(every).Add(every) // on a round time, when other programs wake up too
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(next)):
		}
	}
}

// Reloading notifies the supervisor of a reload, and returns the function that notifies
// of its end.
func (s Supervisor) Reloading() (done func()) {
	s.notify(daemon.SdNotifyReloading + "\n" + strings.TrimSpace(daemon.SdNotifyMonotonicUsec()))
	return func() { s.notify(daemon.SdNotifyReady) }
}

func (s Supervisor) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.Log.Warn().Err(err).Msg("supervisor not notified")
	}
}
