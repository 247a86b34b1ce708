package runnerdaemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

// recover takes the tokens of an earlier program: what was only offered is voided, what began is awaited or
// lost, and outcomes are sent again.
func (d *daemon) recover(runs context.Context) error {
	records, err := d.journal.records()
	if err != nil {
		return err
	}
	d.runs = map[fleet.Token]*run{}
	if err := d.checkWhole(records); err != nil {
		return err
	}
	known := map[fleet.Token]record{}
	var entries []fleet.Entry
	for _, r := range records {
		j := fleet.Job{Token: r.Token}
		if len(r.Job) > 0 {
			if err := fleet.DecodeLarge(r.Job, &j); err != nil {
				return fmt.Errorf("read token journal: job of %s: %w", r.Token, err)
			}
		}
		known[r.Token] = r
		entries = append(entries, fleet.Entry{Job: j, State: r.State})
		if r.State == fleet.Began || r.State == fleet.Ended {
			one := newRun(runs, j)
			one.runID, one.started, one.artifacts = r.RunID, true, artifactsOf(r, j)
			d.runs[r.Token] = one
		}
	}
	word, err := d.journal.word("epoch")
	if err != nil {
		return err
	}
	epoch, _ := strconv.ParseInt(word, 10, 64) // "" before the first owner
	machine, steps := fleet.NewRunner(d.session, epoch, entries)
	d.machine = machine
	leftFiles{d}.removeArtifacts(time.Now()) // no run publishes yet
	for _, s := range steps {
		if s.Kind == fleet.StepResume {
			d.work.Go(func() { d.resume(d.run(s.Token), known[s.Token]) })
		}
	}
	d.do(runs, steps)
	return nil
}

// checkWhole gives the journal another incarnation if there are run directories that it doesn't know: it was
// lost or is an older copy, and the owner must not rely on it.
func (d *daemon) checkWhole(records []record) error {
	known, offered := map[string]bool{}, false
	for _, r := range records {
		known[r.RunID] = true
		offered = offered || r.State == fleet.Offered
	}
	dirs, err := os.ReadDir(filepath.Join(d.state.Path(), "runs"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var unknown []string
	for _, dir := range dirs {
		switch id := dir.Name(); {
		case known[id]:
		case offered && runner.Void(d.runDir(id)):
			if err := d.removeFiles(id); err != nil { // the program ended between the directory and the record that the run began
				return err
			}
		default:
			unknown = append(unknown, id)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	d.Log.Error().Str("runs", strings.Join(unknown, ", ")).
		Msg("the token journal was lost or is an older copy; the owner refuses this runner until a person " +
			"removes it there with: mailboxd runners remove " + d.name)
	if err := d.journal.renew(); err != nil {
		return err
	}
	for _, id := range unknown { // nothing of them is reported
		if _, _, err := runner.Await(d.runDir(id), time.Second); err != nil {
			d.Log.Warn().Str("run", id).Err(err).Msg("unknown run not ended")
		}
		_ = d.removeFiles(id)
	}
	return nil
}

// resume follows a run of an earlier program.
func (d *daemon) resume(one *run, r record) {
	_, job, err := d.jobOf(one.job)
	if err != nil {
		d.lose(one, err)
		return
	}
	job.Rebooted = r.Boot == "" || !strings.HasPrefix(r.Boot, runner.Boot())
	notes := d.notes(one, &job)
	lines := d.sendLines(one, job.Dir)
	same := r.Boot != "" && r.Boot == runner.Evidence(job.Dir) // otherwise the directory was not synced, so a missing file proves nothing
	if same && runner.Void(job.Dir) {
		d.finish(one, job, task.Outcome{Void: errors.New("the runner's program ended before the run began")}, notes, lines)
		return
	}
	d.finish(one, job, d.agents.Recover(one.ctx, job), notes, lines)
}

// lose ends a run whose job can't be read, such as one of another version, and tells the owner that it is lost.
func (d *daemon) lose(one *run, err error) {
	d.Log.Error().Str("run", one.runID).Err(err).Msg("job of a run not read; the run is ended")
	job := task.Job{Task: envelope.Task{Agent: one.job.Agent}, RunID: one.runID}
	o := d.agents.Lost(job, "the runner can't read the job any more: "+err.Error())
	job.Dir = d.runDir(one.runID)
	if d.insist(d.ofRuns, "run not ended", func() error {
		_, _, err := runner.Await(job.Dir, time.Second)
		if _, unread := errors.AsType[*runner.UnreadError](err); unread {
			return err
		}
		return nil
	}) {
		d.finish(one, job, o, d.notes(one, &job), d.sendLines(one, job.Dir))
	}
}
