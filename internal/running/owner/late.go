package owner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/carrier"
	process "mailboxd/internal/running/runner"
	"mailboxd/internal/stores/worktree"
)

// fences keep outcomes that came after the end of their runs.
type fences struct {
	*files
	mu   sync.Mutex
	busy map[fleet.Token]bool // those that are being kept
}

// keep keeps a late outcome with its files, and returns the answer to it once the ledger has it. It changes no result.
func (f *fences) keep(ctx context.Context, m fleet.Done, reply fleet.DoneReply) (answer fleet.DoneReply, kept bool) {
	f.mu.Lock()
	busy := f.busy[m.Token]
	f.busy[m.Token] = true
	f.mu.Unlock()
	if busy { // the hub had kept it too
		reply.Fenced, reply.Later = "", true
		return reply, false
	}
	if err := f.keepLate(ctx, m, reply.Fenced); err != nil {
		f.Log.Error().Err(err).Str("runner", m.Runner).Msg("late answer not kept")
		reply.Fenced, reply.Later, reply.Missing = "", true, errors.Is(err, carrier.ErrMissing)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.busy, m.Token)
	return reply, !reply.Later
}

// lateFile has a late answer, beside its files.
const lateFile = "answer.json"

// keepLate keeps a late answer and its files for review, and has it recorded, unless it is.
func (f *files) keepLate(ctx context.Context, m fleet.Done, why string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("keep late answer of %s: %w", m.Runner, err)
		}
	}()
	if past, err := f.Past(m.Token, m.Runner); err != nil || past == fleet.PastFenced {
		return err
	}
	dir, err := f.LateDir(m.Token)
	if err != nil {
		return err
	}
	seq, _, attempt := m.Token.Task()
	late := task.LateAnswer{
		Run: task.RunName{Task: seq, Attempt: attempt}, Why: why,
		At: task.Assignment{Runner: m.Runner, Incarnation: m.Incarnation, Token: string(m.Token)},
	}
	text, keys := []byte(m.Outcome), []string(nil)
	if m.Object != nil {
		keys = append(keys, m.Object.Key)
		if text, err = f.fetchText(ctx, m.Runner, *m.Object); err != nil {
			return err
		}
	}
	var said fleet.Outcome
	if fleet.DecodeLarge(text, &said) == nil && said.Check() == nil {
		late.Status, late.Summary = said.Result.Status, said.Result.Output.Summary
		late.Left = stayed(m.Runner, said)
	}
	if dir != "" {
		left, err := f.fetchLate(ctx, dir, m, text)
		if err != nil {
			return err
		}
		late.File, late.Left = filepath.Join(dir, lateFile), append(late.Left, left...)
	}
	if err := f.Fenced(late); err != nil {
		return err
	}
	for _, object := range m.Objects {
		keys = append(keys, object.Key)
	}
	if len(keys) > 0 {
		_ = f.link().Forget(ctx, m.Runner, keys...) // the hub removes what stays after a while
	}
	return nil
}

// fetchText returns an object of a runner that is a message.
func (f *files) fetchText(ctx context.Context, runner string, object fleet.Object) ([]byte, error) {
	var b bytes.Buffer
	if object.Size > maxOutcome {
		return nil, nil // it can't be read, and the files are there nevertheless
	}
	err := f.link().Get(ctx, runner, object, &b)
	return b.Bytes(), err
}

// fetchLate puts the files of a late answer into a directory, and then the answer. It returns what was not taken.
func (f *files) fetchLate(ctx context.Context, dir string, m fleet.Done, answer []byte) (left []string, err error) {
	root, err := openDir(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, object := range m.Objects {
		name, what := object.Name, "file "+object.Name
		switch object.Kind {
		case fleet.ObjectLog:
			name, what = process.StdoutFile, "the output"
		case fleet.ObjectPatch:
			name, what = worktree.PatchFile, "the patch"
		case fleet.ObjectArtifact:
		default:
			continue
		}
		if object.Size > f.MaxFile {
			left = append(left, notTaken(what, m.Runner, object.Size, f.MaxFile))
			continue
		}
		if err := f.fetchFile(ctx, root, m.Runner, object, name); err != nil {
			return nil, err
		}
	}
	return left, writeFile(filepath.Join(dir, lateFile), answer)
}
