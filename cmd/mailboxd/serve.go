package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"mailboxd/dispatch"
	"mailboxd/dispatch/store"
	"mailboxd/internal/config"
	"mailboxd/internal/ledger"
	"mailboxd/internal/memory"
	"mailboxd/internal/notice"
	"mailboxd/internal/retention"
	"mailboxd/internal/service"
	"mailboxd/internal/term"
	"mailboxd/internal/view"
	"mailboxd/mailbox"
	"mailboxd/watcher"
)

func serveCommand(g *globals) *cobra.Command {
	once := false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon: take tasks and run their agents",
		Long: `Read the task lines of the mailbox, run the agents of the configuration, and write
one result file for each task. Serve continues where the last serve stopped.

SIGTERM, SIGINT: stop reading and exit. Agents keep running, and the next serve
delivers their answers. With stop_agents_on_exit, agents are ended instead, after
limits.shutdown_grace.

SIGHUP: read agents, policy and approvers again. An invalid file changes nothing.`,
		Example: `  mailboxd serve
  mailboxd serve --once      # do the present tasks, then exit`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := config.Examine(g.config, g.root)
			if err == nil {
				err = found.Mistakes.Err()
			}
			if err != nil {
				return err
			}
			out := term.NewConsole(cmd.ErrOrStderr(), found.Config.Log.Level, found.Config.Log.Format)
			logMistakes(out.Log, found.Mistakes)
			return serve(cmd.Context(), found.Config, g, serveMode{once: once}, out)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "do the present tasks, then exit")
	return cmd
}

// logMistakes logs what serve starts without, and variables that set nothing. The registry
// logs about agents and manifests.
func logMistakes(log zerolog.Logger, found config.Mistakes) {
	for _, m := range found {
		if m.Effect == config.Lacks || m.Effect == config.Unset || m.Effect == config.Warns && m.File == "" {
			log.Warn().Str("reason", m.String()).Msg("configuration has a mistake")
		}
	}
}

// A serveMode is how long a daemon and its mailbox last.
type serveMode struct {
	once      bool // until all tasks that are there are done
	ephemeral bool // the mailbox is removed at the end
}

// serve connects the parts of the daemon, and waits.
func serve(ctx context.Context, cfg config.Config, g *globals, mode serveMode, out term.Console) error {
	defer memory.Tune(cfg.Limits.Queue)()
	log := out.Log
	hangup := make(chan os.Signal, 1)
	if !mode.once {
		signal.Notify(hangup, syscall.SIGHUP) // early, since a SIGHUP would end the daemon
		defer signal.Stop(hangup)
	}
	res, err := openResources(cfg, log)
	if err != nil {
		return err
	}
	defer res.close()
	d, err := dispatch.Open(ctx, res.parts(), res.registry.functions(cfg), storeOptions(cfg, res.fresh, log))
	if err != nil {
		return err
	}
	defer d.Close()
	super := service.Supervisor{Log: log}
	if cfg.StopAgentsOnExit {
		super.Grace = cfg.Limits.ShutdownGrace
	}
	again := newReloader(g, res.registry, super, d.ReevaluateAll)
	server, err := openServer(ctx, mode.ephemeral, res, d, again, log)
	if err != nil {
		return err
	}
	defer server.Close()
	res.logStart(cfg, mode.ephemeral, log)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return d.Serve(ctx) })
	work.Go(func() error { return server.Serve(ctx) })
	work.Go(func() error {
		return super.Serve(ctx, d.Ready(), func() { _ = res.ledger.Update(ctx, func(*ledger.Tx) error { return nil }) })
	})
	work.Go(func() error {
		return (&view.Summary{Footer: out.Footer, Root: res.box.Path(), Ledger: res.ledger}).Serve(ctx)
	})
	if mode.once {
		work.Go(func() error { defer stop(); return drain(ctx, d) })
	} else {
		tasks, results := []string{res.box.TasksDir()}, []string{res.box.ResultsDir()} // mostly written by this daemon
		work.Go(func() error {
			return watcher.WatchBeside(ctx, tasks, results, cfg.Intake.Rescan, func() { d.Look(ctx) })
		})
		work.Go(func() error {
			return notice.New(cfg.NoticeCommand(), slices.Equal(cfg.Notice.Command, config.DefaultNotice()), res.ledger, log).Serve(ctx)
		})
		work.Go(func() error { return memory.UnmapAtRest(ctx, d.Ready(), res.ledger.Changed) })
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
		Depth:             cfg.Limits.Depth,
		Children:          cfg.Limits.Children,
		LimitPause:        store.LimitPause{Least: time.Minute, First: cfg.Limits.ProviderPause, Longest: cfg.Limits.ProviderMax},
		Grace:             cfg.Limits.ShutdownGrace,
		Detach:            !cfg.StopAgentsOnExit,
		Retention:         retention.Policy(cfg.Retention),
		Reading:           cfg.Intake.Reading(),
		RefRoots:          cfg.Intake.RefRoots,
		Tail:              mailbox.TailOptions{MaxLine: cfg.Intake.MaxLineBytes, FromEnd: fresh && cfg.Intake.FirstStart == "from_end"},
		Log:               log,
	}
}
