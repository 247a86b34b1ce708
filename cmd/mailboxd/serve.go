package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"mailboxd/dispatch"
	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/mailbox"
	"mailboxd/watcher"
)

func serveCommand(g *globals) *cobra.Command {
	once := false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Take tasks from the mailbox and run their agents",
		Long: `Serve takes the task lines of the mailbox, runs the agents of the configuration
and leaves one result file for each task. It goes on where the last one stopped.

SIGTERM and SIGINT: take nothing more and exit; agents go on, and the next serve
delivers what they answer. With stop_agents_on_exit they have limits.shutdown_grace.
SIGHUP: read agents and policy again; a broken file changes nothing.`,
		Example: `  mailboxd serve
  mailboxd serve --once      # do what is there, then exit`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := g.load()
			if err != nil {
				return err
			}
			log := newLogger(cmd.ErrOrStderr(), cfg.Log)
			return serve(cmd.Context(), cfg, g, once, log)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "drain what is there, then exit")
	return cmd
}

// serve is the whole daemon: it hands the parts to each other, then waits.
func serve(ctx context.Context, cfg config, g *globals, once bool, log zerolog.Logger) error {
	box, err := mailbox.Open(cfg.Root)
	if err != nil {
		return err
	}
	defer box.Close()
	if err := box.Lock(); err != nil {
		return err
	}
	state, memory, fresh, err := openState(cfg, box, log)
	if err != nil {
		return err
	}
	defer state.Close()
	defer memory.Close()
	keepers, err := openKeepers(state)
	if err != nil {
		return err
	}
	defer keepers.Close()
	team, err := newTeam(cfg, places{box: box, state: state, keepers: keepers}, log)
	if err != nil {
		return err
	}
	defer team.close()
	parts := dispatch.Parts{Box: box, State: state, Ledger: memory}
	d, err := dispatch.Open(ctx, parts, team.functions(), options(cfg, fresh, log))
	if err != nil {
		return err
	}
	defer d.Close()
	for _, warning := range box.Warnings() {
		if !cfg.ephemeral {
			log.Warn().Str("root", box.Path()).Msg(warning)
		}
	}
	if len(cfg.Agents) == 0 {
		log.Warn().Msg("no agents are configured, so every task will be refused; mailboxd init writes a first one")
	}
	log.Info().Str("root", box.Path()).Strs("agents", team.agents().IDs()).Str("version", version()).Msg("serving")

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return d.Serve(ctx) })
	if once {
		work.Go(func() error { defer stop(); return drain(ctx, d) })
	} else {
		dirs, look := []string{box.TasksDir(), box.ResultsDir()}, func() { d.Look(ctx) }
		work.Go(func() error { return watcher.Watch(ctx, dirs, cfg.Intake.Rescan, look) })
		work.Go(func() error { return reloadOnHangup(ctx, g, team, d.Rejudge, log) })
	}
	err = work.Wait()
	log.Info().Err(err).Msg("stopped")
	return err
}

// drain takes what is there and waits until nothing is left to do, or somebody
// stops us.
func drain(ctx context.Context, d *dispatch.Dispatcher) error {
	var failed error
	for more := true; more && ctx.Err() == nil; {
		more, failed = d.Look(ctx)
		if err := d.Idle(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return failed
}

// openState opens the private half: the state directory, which nobody else may
// work with then, and the ledger in it.
// It also says whether this is the very first start.
func openState(cfg config, box *mailbox.Box, log zerolog.Logger) (_ *mailbox.State, _ *ledger.Ledger, fresh bool, err error) {
	dir, err := stateDir(cfg, box.Path())
	if err != nil {
		return nil, nil, false, err
	}
	state, err := mailbox.OpenState(dir, box.Path())
	if err != nil {
		return nil, nil, false, err
	}
	if err := state.Claim(box.Path()); err != nil {
		return nil, nil, false, errors.Join(err, state.Close())
	}
	memory, opened, err := ledger.Open(state.LedgerPath())
	if err != nil {
		return nil, nil, false, errors.Join(err, state.Close())
	}
	if opened.Aside != "" {
		log.Error().Str("file", opened.Aside).Err(opened.Cause).Msg("ledger was unreadable and is kept aside; a new one was begun, and tasks that may have run are held")
	}
	return state, memory, opened.Created && opened.Aside == "", nil
}

// stateDir is where the private half of a root lies.
func stateDir(cfg config, root string) (string, error) {
	if cfg.StateDir != "" {
		return cfg.StateDir, nil
	}
	return mailbox.DefaultStateDir(root)
}

func options(cfg config, fresh bool, log zerolog.Logger) dispatch.Options {
	return dispatch.Options{
		Workers:      cfg.Limits.Concurrency,
		PerRequester: cfg.Limits.PerRequester,
		Queue:        cfg.Limits.Queue,
		Grace:        cfg.Limits.ShutdownGrace,
		Detach:       !cfg.StopAgentsOnExit,
		Retention:    dispatch.Retention(cfg.Retention),
		Reading:      cfg.Intake.reading(),
		RefRoots:     cfg.Intake.RefRoots,
		Tail:         mailbox.TailOptions{MaxLine: cfg.Intake.MaxLineBytes, FromEnd: fresh && cfg.Intake.FirstStart == "from_end"},
		Log:          log,
	}
}

// reading is how strictly requests are read.
func (i intake) reading() envelope.Reading {
	if i.LenientLegacy {
		return envelope.Legacy
	}
	return envelope.Strict
}

// reloadOnHangup reads agents and policy again at each SIGHUP. A broken file
// leaves the old ones in force.
func reloadOnHangup(ctx context.Context, g *globals, team *team, changed func(), log zerolog.Logger) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangup:
		}
		if err := reload(team, g); err != nil {
			log.Error().Err(err).Msg("configuration not reloaded; the old one stays in force")
			continue
		}
		log.Info().Strs("agents", team.agents().IDs()).Msg("configuration reloaded")
		changed()
	}
}

func reload(team *team, g *globals) error {
	cfg, err := g.load()
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	return team.replace(cfg)
}
