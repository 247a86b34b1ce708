package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// beforeFile has the state of a run's directory before the run, if the task was sent to edit
// files in it.
const beforeFile = "before.json"

// maxCompared limits the files of a directory that are compared. With more of them, nothing is
// said about an edit.
const maxCompared = 200_000

var errTooManyFiles = errors.New("it has too many files to compare")

// A dirState is the state of a directory: the names, sizes and times of its files.
type dirState struct {
	Dir    string `json:"dir"`
	Digest string `json:"digest"`
}

// rememberDir keeps the state of the directory of a run that is to edit files there. A worktree
// needs none, since its difference is known.
func (g *Agent) rememberDir(j task.Job, dir string) error {
	if !j.Task.Edit() || g.inWorktree(j.Task) || dir == "" {
		return nil
	}
	digest, err := digestOfDir(dir)
	if err != nil {
		return nil // the run says what is wrong with its directory
	}
	text, err := json.Marshal(dirState{dir, digest})
	if err != nil {
		return err
	}
	return create(inDir(j, beforeFile), text)
}

// checkEdited asks for a review of a success that was to edit files and changed none.
func (g *Agent) checkEdited(j task.Job, r *envelope.Result) {
	if !j.Task.Edit() || g.inWorktree(j.Task) || r.Status != envelope.OK {
		return
	}
	if g.binding.Cwd == "" && j.Task.Workdir() == "" {
		r.Review.Ask("the task was sent to edit files, and had no directory; name one with --in")
		return
	}
	f, err := openRegular(j.Dir, beforeFile)
	if err != nil {
		return // its directory could not be read before the run
	}
	defer f.close()
	text, err := f.read(0, maxWhole)
	var before dirState
	if err != nil || json.Unmarshal(text, &before) != nil {
		return
	}
	if after, err := digestOfDir(before.Dir); err == nil && after == before.Digest {
		r.Review.Ask(fmt.Sprintf("the task was sent to edit files, and nothing in %s has changed", before.Dir))
	}
}

// digestOfDir returns a digest of the names, sizes and times of the files below a directory,
// without those of git. It follows no links, and leaves out what it may not read.
func digestOfDir(dir string) (string, error) {
	sum, count := sha256.New(), 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case path == dir && err != nil:
			return err
		case err != nil:
			return nil
		case entry.Name() == ".git":
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case count == maxCompared:
			return errTooManyFiles
		}
		count++
		info, err := entry.Info()
		if err != nil {
			return nil // it is gone
		}
		link := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			link, _ = os.Readlink(path) // an empty target is as good for a link that is gone
		}
		size, changed := info.Size(), info.ModTime().UnixNano()
		if entry.IsDir() {
			size, changed = 0, 0 // its entries count
		}
		fmt.Fprintf(sum, "%q %v %d %d %q\n", path, info.Mode(), size, changed, link)
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}
