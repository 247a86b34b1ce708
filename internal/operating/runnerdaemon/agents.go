package runnerdaemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/host"
	"mailboxd/internal/stores/dirtree"
	"mailboxd/internal/stores/worktree"
)

// openAgents makes the agents of the configuration.
func (d *daemon) openAgents(box string) (err error) {
	d.agents, err = agent.New(d.Config.Bindings(), agent.Options{
		Roots: []string{d.state.Path()}, Version: d.Version, Worktrees: d.worktrees, Artifacts: d.artifacts,
		Earlier:  func(envelope.ID) (agent.Earlier, error) { return agent.Earlier{}, nil }, // a runner knows no earlier tasks
		Received: d.received, Own: agent.OwnDirs{Root: box, State: d.state.Path()},
		Run: d.keepers.Run, Await: d.keepers.Await,
		Notice: func(id string, err error) { d.Log.Warn().Str("agent", id).Err(err).Msg("problem of an agent") },
	})
	return err
}

// received returns the commit that came with the job of a run.
func (d *daemon) received(runID string) (agent.Received, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.runs {
		if r.runID == runID && r.received != nil {
			return *r.received, true
		}
	}
	return agent.Received{}, false
}

// offers are what the runner announces. The goroutine of claim alone uses the fields above changed.
type offers struct {
	now     fleet.Announcement
	text    string    // tells announcements apart
	made    time.Time // when the programs of the agents were looked at
	changed atomic.Bool
}

// mostCommits and mostRepositories limit the commits in an announcement.
const (
	mostCommits      = 16
	mostRepositories = 64
)

// refresh brings the announcement up to date. It looks at the programs of the agents once in fleet.ClaimWait, since a
// run begins only if its digest is right then, and at the received commits when some came or went.
func (f *offers) refresh(ctx context.Context, describe func() (fleet.Announcement, error), received worktree.Store) error {
	changed := f.changed.Swap(false)
	if !changed && time.Since(f.made) < fleet.ClaimWait {
		return nil
	}
	made := time.Now()
	a, err := describe()
	if a.Commits = f.now.Commits; err == nil && changed {
		a.Commits, err = commits(ctx, received)
	}
	var text []byte
	if err == nil {
		text, err = fleet.Encode(a)
	}
	if err != nil {
		f.changed.Store(true)
		return err
	}
	f.now, f.text, f.made = a, string(text), made
	return nil
}

// announcement describes the runner as it is now, without its commits.
func (d *daemon) announcement() (a fleet.Announcement, err error) {
	a = fleet.Announcement{Version: d.Version, Slots: d.Config.Slots, Capabilities: d.Config.Capabilities}
	for _, id := range d.agents.IDs() {
		known, _ := d.agents.Lookup(id)
		b := known.Binding()
		digest, err := digestOf(&d.planner, b)
		if err != nil {
			return a, err
		}
		a.Agents = append(a.Agents, fleet.Agent{
			ID: b.ID, Digest: digest, Concurrency: b.Concurrency, MaxSensitivity: d.Config.MostSensitive(b.ID).String(),
			Sandbox: string(b.Sandbox.Profile), Worktree: b.Worktree, Idempotent: b.Idempotent,
		})
	}
	if _, err := exec.LookPath("bwrap"); err == nil {
		a.Sandbox = "bubblewrap"
	}
	return a, nil
}

// commits returns the newest received commits.
func commits(ctx context.Context, received worktree.Store) (map[string][]string, error) {
	all, err := received.Commits(ctx, mostCommits)
	for _, repository := range slices.Sorted(maps.Keys(all))[min(len(all), mostRepositories):] {
		delete(all, repository)
	}
	return all, err
}

// diskFull says why no job is taken, for people; "" if the disk of the state has space.
func (d *daemon) diskFull() string {
	disk, err := host.DiskOf(d.state.Path())
	switch {
	case err != nil:
		return fmt.Sprintf("the disk of %s can't be measured: %v", d.state.Path(), err)
	case int64(disk.Bytes) < d.Config.MinFree:
		return fmt.Sprintf("the disk of %s has %d MiB free, less than min_free_bytes, %d MiB; make room",
			d.state.Path(), disk.Bytes>>20, d.Config.MinFree>>20)
	}
	return ""
}

// noteNoJobs keeps for doctor why the owner gives this runner no jobs now, if it gives none. Answers of the owner may
// come at the same time; the last call writes what holds then.
func noteNoJobs(d *daemon) {
	d.noting.Lock()
	defer d.noting.Unlock()
	d.mu.Lock()
	why := d.drain
	d.mu.Unlock()
	file := filepath.Join(d.state.Path(), config.NoJobsFile)
	err := os.Remove(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if why != "" {
		err = dirtree.WriteFile(file, []byte(why+"\n"))
	}
	if err != nil {
		d.Log.Warn().Err(err).Msg("why the owner gives no jobs is not kept for doctor")
	}
}
