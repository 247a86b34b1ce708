package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/rs/zerolog"

	"mailboxd/dispatch"
	"mailboxd/dispatch/store"
	"mailboxd/internal/access/api"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/registry"
	"mailboxd/internal/operating/sealing"
	"mailboxd/internal/running/owner"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/artifact"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/stores/worktree"
	"mailboxd/mailbox"
)

// resources are what a daemon has open and locked.
type resources struct {
	box      *mailbox.Box
	state    *mailbox.State
	ledger   *ledger.Ledger
	keepers  *runner.Keepers
	registry *registry.Registry
	sealer   *sealing.Sealer
	link     *sshLink
	owner    *owner.Owner // of runners; nil: none
	log      zerolog.Logger

	dispatcher atomic.Pointer[dispatch.Dispatcher] // for the owner

	worktrees worktree.Store
	artifacts *artifact.Store
	fresh     bool     // the first start of this mailbox
	closers   []func() // in the order of opening
}

// openResources opens all resources, or none of them.
func openResources(ctx context.Context, cfg config.Config, version string, log zerolog.Logger) (_ *resources, err error) {
	r := &resources{}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if err := r.openBox(cfg); err != nil {
		return nil, withSpaceHint(err, cfg.Root, "remove result files and task files that are no longer needed")
	}
	if err := r.openState(cfg, log); err != nil {
		return nil, err
	}
	if r.keepers, err = openKeepers(r.state, version); err != nil {
		return nil, err
	}
	r.onClose(func() { r.keepers.Close() })
	runner.MarkSelf() // before workers start
	id, err := r.state.ID()
	if err != nil {
		return nil, withSpaceHint(err, r.state.Path(), "directories in runs/ of tasks that are over can be removed")
	}
	if r.worktrees, err = openWorktrees(cfg, r.box, r.state); err != nil {
		return nil, err
	}
	if r.link, err = openLink(ctx, cfg, r.state.Path(), log); err != nil {
		return nil, err
	}
	r.onClose(func() { r.link.close(log) })
	r.log = log
	if err = r.openOwner(cfg, r.link.remote(cfg.Remote), log); err != nil {
		return nil, err
	}
	at := registry.Locations{
		Runners: r.runners(),
		Box:     r.box, State: r.state, Keepers: r.keepers, Worktrees: r.worktrees, Artifacts: r.artifacts, Earlier: r.earlier,
		RefRoots: cfg.Intake.RefRoots, Mailbox: id, Version: version, Signer: r.sealer.Signer,
	}
	if r.registry, err = registry.New(cfg, at, log); err != nil {
		return nil, err
	}
	r.onClose(r.registry.Close)
	return r, nil
}

// openBox opens and locks the shared directory.
func (r *resources) openBox(cfg config.Config) (err error) {
	if r.box, err = mailbox.Open(cfg.Root); err != nil {
		return err
	}
	r.onClose(func() { r.box.Close() })
	return r.box.Lock()
}

// openState opens and claims the state directory, with the ledger.
func (r *resources) openState(cfg config.Config, log zerolog.Logger) (err error) {
	dir, err := cfg.StateDirOf(r.box.Path())
	if err != nil {
		return err
	}
	defer func() { err = withSpaceHint(err, dir, "directories in runs/ of tasks that are over can be removed") }()
	if r.state, err = mailbox.OpenState(dir, r.box.Path()); err != nil {
		return err
	}
	r.onClose(func() { r.state.Close() })
	if err := r.state.Claim(r.box.Path()); err != nil {
		return err
	}
	traces, err := r.state.Traces()
	if err != nil {
		return err
	}
	var opened ledger.Opened
	if r.ledger, opened, err = ledger.Open(r.state.LedgerPath(), traces...); err != nil {
		return err
	}
	r.onClose(func() { r.ledger.Close() })
	if r.sealer, err = sealing.Open(context.Background(), cfg.Sealing(dir), r.ledger, log); err != nil {
		return err
	}
	r.onClose(r.sealer.Close)
	switch {
	case opened.Aside != "":
		log.Error().Str("file", opened.Aside).Err(opened.Cause).Msg("ledger was unreadable and is kept aside; a new one was begun, and tasks that may have run are held")
	case opened.Lost():
		log.Error().Str("file", r.state.LedgerPath()).Err(opened.Cause).Msg("ledger is missing; a new one was begun, and tasks that may have run are held")
	}
	r.artifacts = artifact.In(dir, cfg.Artifacts.MaxBytes)
	r.fresh = opened.Created && !opened.Lost()
	return nil
}

// openWorktrees returns where clones of repositories are. The directory of a default that can't be
// used is none: worktrees_dir has to be set then.
func openWorktrees(cfg config.Config, box *mailbox.Box, state *mailbox.State) (worktree.Store, error) {
	dir, err := cfg.WorktreesDir()
	s := worktree.Store{Dir: dir, Records: worktree.RecordsIn(state.Path())}
	if err = cmp.Or(err, worktree.CheckDir(dir, box.Path(), state.Path())); err != nil {
		if cfg.Worktrees != "" {
			return s, fmt.Errorf("worktrees_dir: %w", err)
		}
		s.Dir = ""
	}
	return s, s.Sweep()
}

// onClose adds a function that close calls.
func (r *resources) onClose(f func()) { r.closers = append(r.closers, f) }

// close closes the resources, the last first.
func (r *resources) close() {
	for i := range r.closers {
		r.closers[len(r.closers)-1-i]()
	}
}

// parts returns what the engine works with.
func (r *resources) parts() store.Parts {
	return store.Parts{Box: r.box, State: r.state, Ledger: r.ledger, Artifacts: r.artifacts}
}

// logStart logs what is served, and warnings.
func (r *resources) logStart(cfg config.Config, mode Options, log zerolog.Logger) {
	if !mode.Ephemeral {
		for _, warning := range r.box.Warnings() {
			log.Warn().Str("root", r.box.Path()).Msg(warning.Error())
		}
	}
	if len(cfg.Agents) == 0 {
		log.Warn().Msg("no agents are configured, so every task is rejected; mailboxd init writes a first one")
	}
	if os.Getuid() == 0 && !mode.Ephemeral {
		log.Warn().Msg("mailboxd runs as root; run it as an ordinary user, whose agents can damage less")
	}
	log.Info().Str("root", r.box.Path()).Strs("agents", r.registry.IDs()).Str("version", mode.Version).Msg("serving")
}

// openServer opens the control socket of a daemon.
func openServer(
	ctx context.Context, cfg config.Config, mode Options, r *resources, d *dispatch.Dispatcher, again *config.Reloader, log zerolog.Logger,
) (*api.Server, error) {
	places, err := reader.SocketPaths(r.box.Path(), r.state.Path())
	if err != nil {
		return nil, err
	}
	if mode.Ephemeral {
		places = places[len(places)-1:] // in the directory that is removed
	}
	group, err := cfg.GroupSocket()
	if err != nil {
		return nil, err
	}
	return api.Open(ctx, d, api.Options{
		SocketPaths: places, GroupSocket: group, Version: mode.Version, RunOf: r.keepers.PartOfRun, OwnRunOf: r.keepers.PartOfOwnRun,
		Survivors: r.keepers.RunProcesses, Approvers: r.registry.Approvers, Cards: r.registry.Cards,
		Proofs: r.registry.Proofs, Runners: r.addControls(r.link.table(r.known)), Log: log, Reload: again.Reload, ConfigDiff: again.Diff,
	})
}

// withSpaceHint adds to the error of a full disk which directory needs space, and what
// can be removed.
func withSpaceHint(err error, dir, what string) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	return fmt.Errorf("%w; make room on the disk of %s: %s", err, dir, what)
}

// KeeperName is the argument that makes this program a keeper: the process that hosts agents and
// outlives the daemon. No command of the command line has this name.
const KeeperName = "keeper"

// openKeepers opens the keepers of a mailbox.
func openKeepers(state *mailbox.State, version string) (*runner.Keepers, error) {
	build, err := runner.BuildID(version)
	if err != nil {
		return nil, err
	}
	return runner.OpenKeepers(filepath.Join(state.Path(), mailbox.KeepersDir), build, []string{"mailboxd", KeeperName})
}
