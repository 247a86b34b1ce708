// Package runnerdaemon is a runner: it takes jobs of an owner at another machine, runs its own agents, and
// reports. It decides nothing about tasks. What it may begin is in its token journal before it begins: a token
// is offered, then began, then a keeper is asked; a token with a tombstone never begins. When the runner's
// program ends, keeper and runs stay, and the next one reports them.
package runnerdaemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"mailboxd/internal/operating/config"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/carrier"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/artifact"
	"mailboxd/internal/stores/worktree"
	"mailboxd/mailbox"
)

// Options start a runner.
type Options struct {
	Config      config.Runner
	URL         string // of the hub
	Credentials carrier.Credentials
	Version     string   // of this program
	Keeper      []string // the command of a keeper; see runner.OpenKeepers
	Log         zerolog.Logger

	// Without is how long it goes on without the hub; 0: for ever. A runner of ssh ends, since the ssh that would start
	// the next one may not be known to have ended there.
	Without time.Duration
}

// A daemon is a runner's program.
type daemon struct {
	Options
	name    string
	session string

	state     *mailbox.State
	journal   *journal
	keepers   *runner.Keepers
	worktrees worktree.Store
	artifacts *artifact.Store
	planner   agent.Planner
	agents    *agent.Agents
	offers    offers
	linked    chan struct{} // closed when link is set
	link      *carrier.Runner
	spells    spells
	noting    sync.Mutex // guards the file of noteNoJobs

	work   sync.WaitGroup // of the runs
	asking sync.WaitGroup // of claims
	hints  sync.WaitGroup // of orders

	ofRuns context.Context // of all runs; ends with runner.ErrDetach

	table
}

// Serve runs a runner until ctx ends. Runs go on after that.
func Serve(ctx context.Context, o Options) (err error) {
	d := &daemon{Options: o, name: cmp.Or(o.Config.Name, o.Credentials.Runner), session: strings.ToLower(rand.Text())}
	d.linked, d.changed = make(chan struct{}), make(chan struct{}, 1)
	switch own := o.Credentials.Runner; {
	case d.name == "":
		return fmt.Errorf("the runner has no name: set --credentials to the file that mailboxd-hub enroll wrote, or name in %s", o.Config.File())
	case own != "" && own != d.name:
		return fmt.Errorf("%s: name: the credentials are those of runner %s, not of %s; remove name, or run: mailboxd-hub enroll %s",
			o.Config.File(), own, d.name, d.name)
	}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.open(); err != nil {
		return fmt.Errorf("start runner: %w", err)
	}
	runs, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, func() { end(runner.ErrDetach) })()
	d.ofRuns = runs
	if err := d.recover(runs); err != nil {
		return fmt.Errorf("start runner: %w", err)
	}
	d.Log.Info().Str("runner", d.name).Str("hub", o.URL).Strs("agents", d.agents.IDs()).Msg("runner started")
	serving, ctx := errgroup.WithContext(ctx)
	serving.Go(func() error { return d.connect(ctx) })
	serving.Go(func() error { return d.claim(ctx, runs) })
	serving.Go(func() error { return d.tick(ctx, runs) })
	err = serving.Wait()
	end(runner.ErrDetach)
	if d.link != nil {
		d.link.Close() // no hints any more
	}
	d.hints.Wait()
	d.work.Wait()
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil
	}
	d.Log.Info().Err(err).Msg("runner stopped")
	return err
}

// open opens the state of the runner, and reads its agents.
func (d *daemon) open() (err error) {
	dir, err := d.Config.StateDir()
	if err != nil {
		return err
	}
	box := filepath.Join(dir, "mailbox") // there is none; the name ties the state to a runner
	if d.state, err = mailbox.OpenState(dir, box); err != nil {
		return err
	}
	if err := d.state.Claim(box); err != nil {
		return err
	}
	if d.journal, err = openJournal(filepath.Join(d.state.Path(), "journal.db")); err != nil {
		return err
	}
	build, err := runner.BuildID(d.Version)
	if err != nil {
		return err
	}
	if d.keepers, err = runner.OpenKeepers(filepath.Join(d.state.Path(), mailbox.KeepersDir), build, d.Keeper); err != nil {
		return err
	}
	runner.MarkSelf()
	d.worktrees = worktree.Store{
		Dir: d.Config.Worktrees, Records: worktree.RecordsIn(d.state.Path()), Received: filepath.Join(d.state.Path(), "repositories"),
	}
	if err := cmp.Or(worktree.CheckDir(d.worktrees.Dir, box, d.state.Path()), d.worktrees.Sweep()); err != nil {
		return fmt.Errorf("worktrees_dir: %w", err)
	}
	d.artifacts = artifact.In(d.state.Path(), 0)
	noteNoJobs(d) // none until the owner says so again
	leftFiles{d}.sweepTransfers()
	d.sweep()
	key, err := d.state.ApprovalKey()
	if err != nil {
		return err
	}
	d.planner.Key = func() []byte { return []byte(key) }
	return d.openAgents(box)
}

// commitsKept is how long received commits stay that no run needs.
const commitsKept = 30 * 24 * time.Hour

// sweep removes what is here since long and no run needs any more.
func (d *daemon) sweep() {
	leftFiles{d}.sweep(time.Now().Add(-leftKept))
	if err := d.worktrees.ForgetReceived(time.Now().Add(-commitsKept)); err != nil {
		d.Log.Warn().Err(err).Msg("old commits not removed")
	}
	d.offers.changed.Store(true)
}

func (d *daemon) close() (err error) {
	if d.keepers != nil {
		err = errors.Join(err, d.keepers.Close())
	}
	if d.journal != nil {
		err = errors.Join(err, d.journal.close())
	}
	if d.state != nil {
		err = errors.Join(err, d.state.Close())
	}
	return err
}

// Pauses between attempts to reach the hub or the owner.
const (
	firstPause = 200 * time.Millisecond
	mostPause  = 10 * time.Second
)

// connect connects to the hub, and reconnects when the connection ended. It returns an error that no further
// attempt can help.
func (d *daemon) connect(ctx context.Context) error {
	if err := carrier.CheckURL(d.URL); err != nil {
		return err
	}
	said := ""
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		link, err := carrier.DialRunner(carrier.RunnerOptions{
			Options: carrier.Options{URL: d.URL, Credentials: d.Credentials, Changed: d.linkChanged}, Name: d.name, Order: d.order,
		})
		if err == nil {
			d.link = link
			close(d.linked)
			d.Log.Info().Str("hub", d.URL).Msg("connected to the hub")
			return nil
		}
		if errors.Is(err, carrier.ErrKey) {
			return err
		}
		if said != err.Error() {
			said = err.Error()
			d.Log.Warn().Err(err).Msg("hub not reached; trying again")
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// isLinked reports whether the hub was reached since the start.
func (d *daemon) isLinked() bool {
	select {
	case <-d.linked:
		return true
	default:
		return false
	}
}

// linkChanged is called when the connection is lost, and when it is back.
func (d *daemon) linkChanged(lost error) {
	if lost != nil {
		d.Log.Warn().Err(lost).Msg("connection lost; runs go on")
		return
	}
	d.Log.Info().Msg("connected to the hub again")
	d.spells.over()
	d.wake()
}

// wait waits for a value of a channel, at most for a time, and not after the end of ctx. It reports whether one came.
func wait(ctx context.Context, most time.Duration, value <-chan struct{}) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-value:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// sleep pauses. It returns false if ctx ended.
func sleep(ctx context.Context, pause time.Duration) bool {
	wait(ctx, pause, nil)
	return ctx.Err() == nil
}
