package runnerdaemon

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/broker"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/toolcall"
	"mailboxd/internal/stores/worktree"
)

// readAgain is the pause before an outcome that couldn't be read is read again.
const readAgain = 5 * time.Second

// finish keeps the outcome of a run, and delivers it.
func (d *daemon) finish(one *run, job task.Job, o task.Outcome, notes *notes, stopLines func()) {
	for o.Unread != nil && !o.Detached {
		d.Log.Warn().Str("run", one.runID).Err(o.Unread).Msg("outcome not read; trying again")
		if !sleep(d.ofRuns, readAgain) { // a cancelled run waits too
			o.Detached = true
			break
		}
		o = d.agents.Recover(one.ctx, job)
	}
	if o.Void != nil && one.ctx.Err() != nil && !errors.Is(context.Cause(one.ctx), runner.ErrDetach) {
		o = d.agents.Run(one.ctx, job, nil) // it was ended while it was about to start; this says so, and starts nothing
	}
	stopLines()
	if notes.close(o.Detached); o.Detached {
		return
	}
	said := outcomeOf(job.Dir, o)
	said.Left = leftFiles{d}.of(one.runID)
	d.needs(one, digestsOf(said.Published)...)
	text, err := fleet.EncodeLarge(said)
	if err != nil {
		d.Log.Error().Str("run", one.runID).Err(err).Msg("outcome not written")
		return
	}
	left, err := fleet.EncodeLarge(fleet.Job{Token: one.token, Agent: one.job.Agent})
	if err != nil || !d.insist(d.ofRuns, "outcome not written", func() error {
		return d.journal.put(record{Token: one.token, State: fleet.Ended, Job: left, RunID: one.runID, Boot: runner.Boot(), Done: text})
	}) {
		return // the next program reads it again
	}
	d.keepers.Forget(job.Dir)
	d.Log.Info().Str("run", one.runID).Str("agent", one.job.Agent).Str("status", string(o.Result.Status)).Msg("run ended")
	d.advance(d.ofRuns, func(m *fleet.Runner) []fleet.Step {
		if cost := o.Result.Cost; cost != nil {
			m.Spent(one.token, *cost)
		}
		return m.Ended(one.token)
	})
	d.look() // a slot is free
}

// outcomeOf returns an outcome for the owner. Files of the run directory are named as run:PATH.
func outcomeOf(dir string, o task.Outcome) fleet.Outcome {
	out := fleet.Outcome{
		Result: o.Result, Exit: o.Exit, Retry: o.Retry, Messages: o.Messages, Hold: o.Hold, HoldUntil: o.HoldUntil, HoldShort: o.HoldShort,
		Unanswered: o.Unanswered, Patch: o.Patch, Published: o.Published, RefusedHosts: o.RefusedHosts,
	}
	if o.Void != nil {
		out.Void = o.Void.Error()
	}
	for i, a := range out.Result.Artifacts {
		if u, err := url.Parse(a.URI); err == nil && u.Scheme == "file" {
			if rest, ok := strings.CutPrefix(u.Path+"/", dir+"/"); ok {
				out.Result.Artifacts[i].URI = "run:" + strings.TrimSuffix(rest, "/")
			}
		}
	}
	return out
}

// deliver sends the outcome of a run until the owner has it.
func (d *daemon) deliver(one *run) {
	ctx := d.ofRuns // a cancelled run has an outcome too
	select {
	case <-ctx.Done():
		return
	case <-d.linked:
	}
	var done *fleet.Done
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, mostPause) {
		back, sent, err := d.spells.current(), delivery{}, error(nil)
		if done == nil {
			done, err = d.pack(ctx, one)
		}
		if err == nil {
			sent, err = d.send(ctx, done)
		}
		if err != nil && ctx.Err() == nil {
			d.Log.Warn().Str("run", one.runID).Err(err).Msg("outcome not delivered; trying again")
		}
		if sent.missing {
			done = nil
		}
		if sent.late {
			pause = lateAgain
		}
		select {
		case <-one.settled:
			return
		case <-ctx.Done():
		case <-back.Done():
			pause = firstPause / 2 // doubled
		case <-time.After(pause):
		}
	}
}

// A delivery says what became of an outcome that was sent.
type delivery struct {
	late    bool // the hub keeps it, or the owner refused it
	missing bool // its objects are not at the hub any more
}

// lateAgain is the pause before an outcome that the hub keeps is sent again.
const lateAgain = time.Minute

// send sends an outcome once.
func (d *daemon) send(ctx context.Context, done *fleet.Done) (delivery, error) {
	waiting, stop := d.spells.within(ctx, fleet.ClaimWait)
	defer stop()
	done.Report = d.report()
	reply, late, err := d.link.Done(waiting, *done)
	switch {
	case err != nil || late:
		return delivery{late: late}, err
	case reply.Missing:
		return delivery{missing: true}, errors.New("the hub has lost its files; they are sent again")
	case reply.Refused != "":
		return delivery{late: true}, fmt.Errorf("the owner refused the outcome: %s", reply.Refused)
	case reply.Fenced != "":
		d.Log.Warn().Str("token", string(done.Token)).Str("reason", reply.Fenced).
			Msg("the outcome came too late; the owner keeps it for a review")
	}
	d.advance(d.ofRuns, func(m *fleet.Runner) []fleet.Step { return m.Answered(reply) })
	return delivery{}, nil
}

// forget removes all of a token that the owner has settled. The journal knows it until its run directory is gone:
// a directory that it doesn't know says that the journal was lost.
func (d *daemon) forget(token fleet.Token) {
	if one := d.drop(token); one != nil {
		close(one.settled)
		leave := func() error { return leftFiles{d}.leave(one.runID) }
		if !d.insist(d.ofRuns, "files of a settled run neither removed nor kept apart", leave) {
			return // the next program sends the outcome again
		}
	}
	d.insist(d.ofRuns, "settled token not forgotten", func() error { return d.journal.forget(token) })
}

// traveling are the files of a run directory that the owner gets. The others say what was run and with which
// variables, which stays here, or are the owner's own.
var traveling = []string{
	runner.StdoutFile, runner.StderrFile, runner.SetupFile, worktree.PatchFile, toolcall.AnswersFile,
	"progress.jsonl", "result.json", broker.CallsFile,
}

// pack sends the files of a run as objects, and returns the message about its end.
func (d *daemon) pack(ctx context.Context, one *run) (*fleet.Done, error) {
	outcome, err := d.journal.outcome(one.token)
	if err != nil {
		return nil, err
	}
	done := &fleet.Done{Token: one.token, Outcome: outcome}
	if len(outcome) > fleet.MaxInline {
		o, err := d.link.Put(ctx, fleet.ObjectOutcome, keyOf(one, fleet.ObjectOutcome, ""), "", strings.NewReader(string(outcome)))
		if err != nil {
			return nil, err
		}
		done.Outcome, done.Object = nil, &o
	}
	var said fleet.Outcome
	if err := fleet.DecodeLarge(outcome, &said); err != nil {
		return nil, err
	}
	published := map[string]bool{}
	for _, a := range said.Published {
		published[a.Name] = true
		if err := d.packPublished(ctx, one, done, a); err != nil {
			return nil, err
		}
	}
	dir := d.runDir(one.runID)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if published[e.Name()] || !e.Type().IsRegular() || !slices.Contains(traveling, e.Name()) {
			continue
		}
		if err := d.packFile(ctx, one, done, filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return done, nil
}

// keyOf returns the key of a file of a run. It is always the same, so a file that is sent again takes no more space.
func keyOf(one *run, kind fleet.ObjectKind, name string) string {
	sum := sha256.Sum256([]byte(string(kind) + "/" + name))
	return string(one.token) + "-" + hex.EncodeToString(sum[:7])
}

// packFile sends one file of a run directory. An empty one doesn't travel, and one that is too large is left.
func (d *daemon) packFile(ctx context.Context, one *run, done *fleet.Done, path string) error {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil // it is gone
	}
	defer file.Close()
	info, err := file.Stat()
	name := filepath.Base(path)
	kind, as := fleet.ObjectArtifact, name
	switch name {
	case runner.StdoutFile:
		kind, as = fleet.ObjectLog, ""
	case worktree.PatchFile:
		kind, as = fleet.ObjectPatch, ""
	}
	if err != nil || info.Size() == 0 || info.Size() > fleet.MaxFile {
		return err
	}
	o, err := d.link.Put(ctx, kind, keyOf(one, kind, as), as, file)
	if err == nil {
		done.Objects = append(done.Objects, o)
	}
	return err
}

// Beginnings of the names of files that are being sent or received, in the state directory.
const (
	objectPrefix    = ".object-"
	publishedPrefix = ".published-"
)

// packPublished sends a file that a run published.
func (d *daemon) packPublished(ctx context.Context, one *run, done *fleet.Done, a task.Artifact) error {
	path := filepath.Join(d.state.Path(), publishedPrefix+strings.ToLower(rand.Text()))
	if err := d.artifacts.Export(a.Digest, path); err != nil {
		return err
	}
	defer func() { _ = os.Remove(path) }()
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	o, err := d.link.Put(ctx, fleet.ObjectArtifact, keyOf(one, fleet.ObjectArtifact, a.Name), a.Name, file)
	if err == nil {
		done.Objects = append(done.Objects, o)
	}
	return err
}
