package executor

import (
	"errors"
	"io/fs"
	"os"

	"mailboxd/dispatch/exchange"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// NewRunDir returns the empty directory of an attempt whose intent comes next. The error wraps
// fs.ErrExist when another run may have used that directory.
func (p *Preparer) NewRunDir(id envelope.ID, revision, attempt int) (string, error) {
	path := p.State.RunDir(id, revision, attempt)
	unused := p.Unused.Take(path)
	dir, err := p.State.MakeRunDir(id, revision, attempt)
	switch {
	case unused && errors.Is(err, fs.ErrExist):
		return path, nil
	case unused && err != nil:
		p.Unused.Keep(path)
	}
	return dir, err
}

// dropRunDir removes the unused directory of a task that has no next attempt, if there is one.
// The task's state in the ledger shows that the attempt has no intent.
func (p *Preparer) dropRunDir(row task.Task) error {
	if !p.Unused.Take(p.State.RunDir(row.ID, row.Revision, row.Attempt+1)) {
		return nil
	}
	return p.State.RemoveRunDir(row.ID, row.Revision, row.Attempt+1)
}

// removeRunDir removes the directory of an attempt that never began. No other attempt uses a
// directory that stays.
func (p *Preparer) removeRunDir(row task.Task, attempt int) {
	if err := p.State.RemoveRunDir(row.ID, row.Revision, attempt); err != nil {
		p.Log(row).Warn().Err(err).Msg("directory of a run that never began not removed")
	}
}

// makeRunDir gives the job the next attempt whose directory is free, since no directory is used
// twice. The ledger has no run for the directories in use: it returns those in which a run may
// have begun.
func (p *Preparer) makeRunDir(j *task.Job) (unknown []string, err error) {
	if !p.Agents.HasDir(j.Task.Agent) {
		j.Attempt++
		return nil, nil
	}
	for {
		j.Attempt++
		if p.Agents.IsRemote != nil && p.Agents.IsRemote(j.Task.Agent) {
			j.Dir = p.State.RunDir(j.Task.ID, j.Revision, j.Attempt) // made when there is something to write
			if _, err := os.Lstat(j.Dir); errors.Is(err, fs.ErrNotExist) {
				return unknown, nil
			}
		}
		dir, err := p.NewRunDir(j.Task.ID, j.Revision, j.Attempt)
		if err == nil {
			j.Dir = dir
			return unknown, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if used := p.State.RunDir(j.Task.ID, j.Revision, j.Attempt); exchange.HasOutput(used) {
			unknown = append(unknown, p.Relative(used))
		}
	}
}
