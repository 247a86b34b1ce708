package runnerdaemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/dirtree"
	"mailboxd/internal/stores/worktree"
)

// offered writes a token that was offered, and fetches what its job needs. A job that can't begin here is
// voided: the owner gives it to another claim.
func (d *daemon) offered(one *run) bool {
	text, err := fleet.EncodeLarge(one.job)
	if err == nil {
		err = d.journal.put(record{Token: one.token, State: fleet.Offered, Job: text})
	}
	var job task.Job
	if err == nil {
		d.mu.Lock()
		d.machine.Keeps(one.token) // what it needs may take longer than a lease
		d.mu.Unlock()
		job, err = d.fetch(one.ctx, one)
	}
	if err == nil {
		err = d.mayBegin(one, job)
	}
	if err == nil {
		err = makeRunDir(job.Dir)
	}
	if errors.Is(context.Cause(one.ctx), runner.ErrDetach) {
		return false // the next program voids it
	}
	if err != nil {
		d.Log.Warn().Str("token", string(one.token)).Str("agent", one.job.Agent).Err(err).Msg("job not begun")
		d.mu.Lock()
		_, _ = d.machine.Unfit(one.token) // it was only offered
		d.mu.Unlock()
	}
	return true
}

// noteVoided writes the tombstone of a token, which never begins here.
func (d *daemon) noteVoided(token fleet.Token) error {
	if one := d.run(token); one != nil {
		if err := d.removeFiles(one.runID); err != nil {
			return err // the journal doesn't name the directory any more
		}
	}
	if err := d.journal.put(record{Token: token, State: fleet.Voided}); err != nil {
		return err
	}
	d.drop(token)
	return nil
}

// start runs a job whose start is in the journal.
func (d *daemon) start(one *run) {
	_, job, err := d.jobOf(one.job)
	if err != nil {
		d.lose(one, err)
		return
	}
	d.Log.Info().Str("run", one.runID).Str("agent", one.job.Agent).Str("task", string(job.Task.ID)).Msg("run began")
	notes := d.notes(one, &job)
	lines := d.sendLines(one, job.Dir)
	d.finish(one, job, d.agents.Run(one.ctx, job, nil), notes, lines)
}

// endUnstarted makes the outcome of a run that was ended between the record of its start and the start.
func (d *daemon) endUnstarted(one *run) {
	d.mu.Lock()
	started := one.started
	one.started = true
	d.mu.Unlock()
	if !started {
		d.work.Go(func() { d.start(one) }) // it starts nothing any more
	}
}

// mostWork limits the bytes of a Work that comes as an object.
const mostWork = 256 << 20

// fetch returns the job of a run with all that it needs here.
func (d *daemon) fetch(ctx context.Context, one *run) (job task.Job, err error) {
	j := &one.job
	if o := j.Object; o != nil {
		var b bytes.Buffer
		if o.Size > mostWork {
			return job, fmt.Errorf("the job has %d bytes, more than %d", o.Size, mostWork)
		}
		if err := d.link.Get(ctx, *o, &b); err != nil {
			return job, err
		}
		j.Work, j.Object = b.Bytes(), nil
	}
	w, job, err := d.jobOf(*j)
	if err != nil {
		return job, err
	}
	d.mu.Lock()
	one.runID = w.RunID
	d.mu.Unlock()
	d.needs(one, inputsOf(w)...)
	for _, in := range w.Inputs {
		if err := d.fetchInput(ctx, in); err != nil {
			return job, err
		}
	}
	if w.Worktree != nil {
		if err := d.fetchCommit(ctx, one, *w.Worktree); err != nil {
			return job, err
		}
	}
	return job, nil
}

// jobOf returns the job of a message, with the directory of its run.
func (d *daemon) jobOf(j fleet.Job) (w fleet.Work, job task.Job, err error) {
	if err := fleet.DecodeLarge(j.Work, &w); err != nil {
		return w, job, fmt.Errorf("read job: %w", err)
	}
	if err := errors.Join(w.Check(), fleet.Key(w.RunID)); err != nil {
		return w, job, fmt.Errorf("read job: %w", err)
	}
	if w.Task.Agent != j.Agent {
		return w, job, fmt.Errorf("read job: it is for agent %q, and its task for %q", j.Agent, w.Task.Agent)
	}
	job = task.Job{
		Task: w.Task, Revision: w.Revision, Attempt: w.Attempt, RunID: w.RunID, Digest: w.Digest, Plan: w.Plan,
		Allowance: w.Allowance, Conversation: w.Conversation, Terms: w.Terms, Dir: d.runDir(w.RunID),
	}
	job.Task.Raw = w.Request
	job.Terms.Deadline = j.Deadline
	if j.Idempotent {
		job.Lease = filepath.Join(job.Dir, leaseFile)
	}
	if w.Worktree != nil {
		job.Cwd = d.worktrees.Received // the clone takes its place
	}
	return w, job, nil
}

// leaseFile is the file in the directory of an idempotent run that says its keeper when to end it.
const leaseFile = "lease"

// setLease tells the keeper of an idempotent run when to end it. A machine that goes down ends it too, so
// nothing is synced.
func (d *daemon) setLease(token fleet.Token, until time.Duration) {
	one := d.run(token)
	if one == nil {
		return
	}
	path := filepath.Join(d.runDir(one.runID), leaseFile)
	err := os.WriteFile(path+".new", strconv.AppendInt(nil, int64(until), 10), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		d.Log.Warn().Str("run", one.runID).Err(err).Msg("lease of a run not extended; its keeper ends it then")
	}
}

func (d *daemon) runDir(id string) string { return filepath.Join(d.state.Path(), "runs", id) }

// fetchInput puts an artifact that the request refers to where runs find it.
func (d *daemon) fetchInput(ctx context.Context, o fleet.Object) error {
	if _, err := d.artifacts.Stat(o.SHA256); err == nil {
		return nil
	}
	path, err := d.fetchFile(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(path) }()
	_, err = d.artifacts.PutPath(path)
	return err
}

// fetchFile writes an object to a file, which the caller removes.
func (d *daemon) fetchFile(ctx context.Context, o fleet.Object) (path string, err error) {
	file, err := os.CreateTemp(d.state.Path(), objectPrefix+"*")
	if err != nil {
		return "", err
	}
	err = errors.Join(d.link.Get(ctx, o, file), file.Close())
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return file.Name(), err
}

// fetchCommit receives the commit that a run starts from.
func (d *daemon) fetchCommit(ctx context.Context, one *run, w fleet.Worktree) error {
	var b worktree.Bundle
	if err := json.Unmarshal(w.Detail, &b); err != nil {
		return fmt.Errorf("read bundle: %w", err)
	}
	if b.Commit != w.Commit || b.Repository != w.Repository {
		return errors.New("read bundle: its description names another commit")
	}
	file, err := "", error(nil)
	if w.Bundle != nil {
		if w.Bundle.Size != b.Size || w.Bundle.SHA256 != b.SHA256 {
			return errors.New("read bundle: its description is of another file")
		}
		if file, err = d.fetchFile(ctx, *w.Bundle); err != nil {
			return err
		}
		defer func() { _ = os.Remove(file) }()
	}
	if err := d.worktrees.Receive(ctx, b, file); err != nil {
		return err
	}
	d.offers.changed.Store(true)
	got := agent.Received{Bundle: b}
	if o := w.Patch; o != nil {
		var patch bytes.Buffer
		if o.Size > worktree.MaxPatch {
			return errors.New("read patch: it is too large")
		}
		if err := d.link.Get(ctx, *o, &patch); err != nil {
			return err
		}
		got.Patch = patch.Bytes()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	one.received = &got
	return nil
}

// mayBegin returns why a job doesn't begin here, or nil.
func (d *daemon) mayBegin(one *run, job task.Job) error {
	id := one.job.Agent
	a, ok := d.agents.Lookup(id)
	if !ok {
		return fmt.Errorf("this runner has no agent %q", id)
	}
	digest, err := digestOf(&d.planner, a.Binding())
	switch most := d.Config.MostSensitive(id); {
	case err != nil:
		return err
	case digest != one.job.Digest:
		d.offers.changed.Store(true)
		return fmt.Errorf("the command of agent %q is not the one of the job: it was changed, so it needs another approval", id)
	case job.Task.Sensitivity > most:
		return fmt.Errorf("the task is %s, and this runner takes at most %s for agent %q; see max_sensitivity", job.Task.Sensitivity, most, id)
	case d.diskFull() != "":
		return errors.New(d.diskFull())
	}
	return context.Cause(one.ctx)
}

// makeRunDir makes the directory of a run before the record that it began: it shows the next program whether
// a keeper started anything.
func makeRunDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make run directory: %w", err)
	}
	return nil
}

// noteBegan writes that a run begins.
func (d *daemon) noteBegan(one *run) error {
	text, err := fleet.EncodeLarge(one.job)
	if err != nil {
		return err
	}
	return d.journal.put(record{Token: one.token, State: fleet.Began, Job: text, RunID: one.runID, Boot: runner.Evidence(d.runDir(one.runID))})
}

// removeFiles removes what a run left here. The error is about its directory.
func (d *daemon) removeFiles(runID string) error {
	if runID == "" {
		return nil
	}
	leftFiles{d}.removeClone(runID)
	err := dirtree.Remove(d.runDir(runID))
	if err != nil {
		d.Log.Warn().Str("run", runID).Err(err).Msg("run directory not removed")
	}
	return err
}

// removeClone removes the worktree of a run.
func (d leftFiles) removeClone(runID string) {
	c, ok, err := d.worktrees.Open(runID)
	if err == nil && ok {
		err = d.worktrees.Remove(c)
	}
	if err != nil {
		d.Log.Warn().Str("run", runID).Err(err).Msg("worktree not removed")
	}
}
