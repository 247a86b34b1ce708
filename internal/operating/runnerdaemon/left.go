package runnerdaemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/stores/dirtree"
)

// leftKept is how long what didn't travel stays here after the owner settled its run.
const leftKept = 30 * 24 * time.Hour

// leftFiles are what didn't travel of the runs of a runner.
type leftFiles struct{ *daemon }

// dir is where the directory of a settled run stays that has something that didn't travel.
func (d leftFiles) dir(runID string) string { return filepath.Join(d.state.Path(), "left", runID) }

// of says what of an ended run is too large to travel, and where it is once the owner has settled the run.
func (d leftFiles) of(runID string) (all []fleet.Left) {
	for _, name := range traveling {
		info, err := os.Lstat(filepath.Join(d.runDir(runID), name))
		if err == nil && info.Mode().IsRegular() && info.Size() > fleet.MaxFile {
			what := fmt.Sprintf("%s has %d MiB; files of at most %d MiB travel", name, info.Size()>>20, fleet.MaxFile>>20)
			all = append(all, fleet.Left{What: what, Path: filepath.Join(d.dir(runID), name)})
		}
	}
	if c, ok, err := d.worktrees.Open(runID); err == nil && ok && c.Work != nil && c.Work.Problem != "" {
		all = append(all, fleet.Left{What: "the difference of the worktree could not be kept: " + c.Work.Problem, Path: c.Dir})
	}
	return all
}

// leave removes what a settled run left here, and keeps apart what didn't travel or can't be removed. It may be called
// again for the same run.
func (d leftFiles) leave(runID string) error {
	if len(d.of(runID)) == 0 && d.removeFiles(runID) == nil {
		return nil
	}
	to := d.dir(runID)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	err := os.Rename(d.runDir(runID), to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	now := time.Now()
	return errors.Join(os.Chtimes(to, now, now), dirtree.SyncDir(filepath.Dir(to)))
}

// sweep removes what didn't travel and was kept before a time.
func (d leftFiles) sweep(before time.Time) {
	kept, _ := filepath.Glob(d.dir("*")) // the pattern is right
	for _, dir := range kept {
		info, err := os.Lstat(dir)
		if err != nil || info.ModTime().After(before) {
			continue
		}
		d.removeClone(filepath.Base(dir))
		if err := dirtree.Remove(dir); err != nil {
			d.Log.Warn().Str("run", filepath.Base(dir)).Err(err).Msg("files of a run that did not travel not removed")
		}
	}
}

// sweepTransfers removes the files of transfers that an earlier program didn't finish.
func (d leftFiles) sweepTransfers() {
	for _, pattern := range []string{objectPrefix + "*", publishedPrefix + "*"} {
		files, _ := filepath.Glob(filepath.Join(d.state.Path(), pattern)) // the pattern is right
		for _, file := range files {
			if err := os.Remove(file); err != nil {
				d.Log.Warn().Err(err).Msg("file of an earlier transfer not removed")
			}
		}
	}
}
