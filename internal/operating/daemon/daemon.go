// Package daemon connects the parts of a daemon, serves, and waits. Two daemons never serve one
// mailbox: the second one fails to lock it.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"mailboxd/dispatch"
	"mailboxd/dispatch/store"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/notice"
	"mailboxd/internal/operating/registry"
	"mailboxd/internal/operating/service"
	"mailboxd/internal/running/schedule"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/stores/retention"
	"mailboxd/mailbox"
	"mailboxd/watcher"
)

// Options say how a daemon is started, and how long it and its mailbox last.
type Options struct {
	Version    string // of this program
	ConfigPath string // of the configuration that a reload reads; "" for the default
	Root       string // as a flag names it, for a reload; "" for none
	Once       bool   // until all tasks that are there are done
	Ephemeral  bool   // the mailbox is removed at the end
}

// Serve connects the parts of the daemon, and serves until ctx ends, or with Once until all tasks
// that are there are done.
func Serve(ctx context.Context, cfg config.Config, mode Options, out term.Console) error {
	defer tuneRuntime(cfg.Limits.Queue)()
	log := out.Log
	hangup := make(chan os.Signal, 1)
	if !mode.Once {
		signal.Notify(hangup, syscall.SIGHUP) // early, since a SIGHUP would end the daemon
		defer signal.Stop(hangup)
	}
	res, err := openResources(ctx, cfg, mode.Version, log)
	if err != nil {
		return err
	}
	defer res.close()
	d, err := dispatch.Open(ctx, res.parts(), res.registry.Functions(cfg), storeOptions(cfg, res.fresh, log))
	if err != nil {
		return err
	}
	defer d.Close()
	res.dispatcher.Store(d)
	super := service.Supervisor{Log: log}
	if cfg.StopAgentsOnExit {
		super.Grace = cfg.Limits.ShutdownGrace
	}
	again := newReloader(mode, res.registry, super, d.ReevaluateAll)
	server, err := openServer(ctx, cfg, mode, res, d, again, log)
	if err != nil {
		return err
	}
	defer server.Close()
	ofRuns, err := mailbox.RunFilesDir(res.state.Path())
	if err != nil {
		return err
	}
	res.logStart(cfg, mode, log)

	notifier := notice.New(ctx, notice.Commands(cfg.NotifyCommands()), slices.Equal(cfg.Notify.Waits, config.DefaultNotice()), res.ledger, log)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return d.Serve(ctx) })
	work.Go(func() error { return server.Serve(ctx) })
	if res.owner != nil {
		work.Go(func() error { return res.owner.Serve(ctx, d.Ready()) })
	}
	work.Go(func() error { return res.sealer.Serve(ctx) })
	work.Go(func() error { return res.link.serve(ctx) })
	work.Go(func() error {
		return super.Serve(ctx, d.Ready(), func() { _ = res.ledger.Update(ctx, func(*ledger.Tx) error { return nil }) })
	})
	work.Go(func() error {
		return (&view.Summary{Footer: out.Footer, Root: res.box.Path(), Ledger: res.ledger}).Serve(ctx)
	})
	if mode.Once {
		work.Go(func() error { defer stop(); return drain(ctx, d) })
	} else {
		tasks, results := []string{res.box.TasksDir(), ofRuns}, []string{res.box.ResultsDir()} // mostly written by this daemon
		work.Go(func() error {
			return watcher.WatchBeside(ctx, tasks, results, cfg.Intake.Rescan, func() { d.Look(ctx) })
		})
		work.Go(func() error {
			return notifier.Serve(ctx)
		})
		if cfg.Metrics.Textfile != "" {
			work.Go(func() error { return server.KeepTextfile(ctx, cfg.Metrics.Textfile) })
		}
		work.Go(func() error { return unmapWhenIdle(ctx, d.Ready(), res.ledger.Changed) })
		work.Go(func() error { return again.Serve(ctx, hangup) })
	}
	err = work.Wait()
	log.Info().Err(err).Msg("stopped")
	return err
}

// drain takes all lines and waits until all tasks are done, or ctx ends.
func drain(ctx context.Context, d *dispatch.Dispatcher) error {
	var failed error
	for more := true; more && ctx.Err() == nil; {
		more, failed = d.Look(ctx)
		if err := d.Idle(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		more = more || failed == nil && d.Unread()
	}
	return failed
}

// storeOptions converts the configuration to the options of the engine.
func storeOptions(cfg config.Config, fresh bool, log zerolog.Logger) store.Options {
	return store.Options{
		Workers:           cfg.Limits.Concurrency,
		PerRequester:      cfg.Limits.PerRequester,
		Queue:             cfg.Limits.Queue,
		QueuePerRequester: cfg.Limits.QueuePer,
		MaxPriority:       cfg.Limits.Priority,
		Depth:             cfg.Limits.Depth,
		Children:          cfg.Limits.Children,
		LimitPause:        limitPause(cfg.Limits),
		Grace:             cfg.Limits.ShutdownGrace,
		Detach:            !cfg.StopAgentsOnExit,
		Retention:         retention.Policy(cfg.Retention),
		Reading:           cfg.Intake.Reading(),
		RefRoots:          cfg.Intake.RefRoots,
		Tail:              mailbox.TailOptions{MaxLine: cfg.Intake.MaxLineBytes, FromEnd: fresh && cfg.Intake.FirstStart == "from_end"},
		Log:               log,
	}
}

// limitPause returns how long an agent starts nothing whose provider did not serve it.
func limitPause(l config.Limits) schedule.LimitPause {
	return schedule.LimitPause{Short: min(30*time.Second, l.ProviderPause), First: l.ProviderPause, Longest: l.ProviderMax}
}

// newReloader returns what reloads the configuration of a daemon; changed is called after.
func newReloader(mode Options, reg *registry.Registry, super service.Supervisor, changed func()) *config.Reloader {
	return &config.Reloader{
		Path: mode.ConfigPath, Root: mode.Root, InForce: reg.Loaded(), ReadAt: time.Now(), Replace: reg.Replace, Reloading: super.Reloading,
		Done: func(d client.ConfigDiff) {
			if len(d.Mistakes) > 0 {
				super.Log.Error().Strs("reasons", d.Mistakes).Msg("configuration not reloaded; the old one stays in force")
				return
			}
			super.Log.Info().Strs("agents", reg.IDs()).Strs("changes", view.ConfigChanges(d.Changes)).Msg("configuration reloaded")
			changed()
		},
	}
}

// Collect removes old files and records of a mailbox that no daemon serves.
func Collect(ctx context.Context, cfg config.Config, log zerolog.Logger, dry bool) (gone retention.Collected, err error) {
	r := &resources{}
	defer r.close()
	err = r.openBox(cfg)
	if locked, ok := errors.AsType[*mailbox.LockedError](err); ok {
		return gone, fmt.Errorf("%w, which collects by itself once a day", locked)
	}
	if err != nil {
		return gone, err
	}
	if err := r.openState(cfg, log); err != nil {
		return gone, err
	}
	return retention.Collector(r.parts()).Collect(ctx, retention.Policy(cfg.Retention), time.Now(), dry)
}
