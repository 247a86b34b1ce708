// Package reader reads what the daemon knows: from the daemon while one serves, and
// otherwise from the ledger. It changes nothing, except that it appends submissions.
package reader

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/api"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

// A Reader reads what the daemon knows, whether one serves or not.
type Reader struct {
	Location Location
	Root     string
	State    *mailbox.State // nil: no daemon has ever served this root
	Client   *client.Client // asks the daemon, or the ledger where none answers
	close    func() error   // closes what Client asks

	served bool // a daemon serves, perhaps a busy one
}

// openLedger has the reader read the ledger; an empty one if there is none.
func (r *Reader) openLedger(ctx context.Context) error {
	found, err := (*ledger.Reader)(nil), fs.ErrNotExist
	if r.State != nil {
		found, err = ledger.OpenReader(r.State.LedgerPath())
	}
	if errors.Is(err, fs.ErrNotExist) {
		found, err = ledger.NoLedger(ctx)
	}
	if err != nil {
		return err
	}
	records := &api.Records{Root: r.Root, State: r.State, Ledger: found}
	r.Client, r.close = client.Within(records.Handler()), found.Close
	return nil
}

// Close closes what the reader has open.
func (r *Reader) Close() (err error) {
	if r.close != nil {
		err = r.close()
	}
	if r.State != nil {
		err = errors.Join(err, r.State.Close())
	}
	return err
}

// leaves reports whether an error says that the daemon is gone or stops.
func leaves(err error) bool {
	said, ok := errors.AsType[*client.Error](err)
	return ok && said.Kind == client.Stopping || errors.Is(err, client.ErrDown)
}

// IsBusy reports whether an error says that the daemon has too many connections.
func IsBusy(err error) bool {
	said, ok := errors.AsType[*client.Error](err)
	return ok && said.Kind == client.Busy
}

// Latest returns the latest revision of a task.
func (r *Reader) Latest(ctx context.Context, id envelope.ID) (client.Task, error) {
	task, err := r.Client.Latest(ctx, id)
	if noTask(err) {
		return client.Task{}, exit.With(exit.NoTask, "no task %q", id)
	}
	return task, err
}

// noTask reports whether an error says that the ledger has no such task.
func noTask(err error) bool {
	said, ok := errors.AsType[*client.Error](err)
	return ok && said.Kind == client.NoTask
}

// ErrNoMailbox says that the mailbox does not exist.
var ErrNoMailbox = errors.New("there is no mailbox yet; start one with: mailboxd serve")

// Tasks lists the tasks that pass the filter.
func (r *Reader) Tasks(ctx context.Context, f client.Filter) ([]client.Task, error) {
	return r.Client.Tasks(ctx, f)
}

// Stats returns the sums since a time.
func (r *Reader) Stats(ctx context.Context, since time.Time) (client.Stats, error) {
	return r.Client.Stats(ctx, since)
}

// Balances returns the accounts of a day.
func (r *Reader) Balances(ctx context.Context, day string) ([]client.Balance, error) {
	return r.Client.Balances(ctx, day)
}

// Details returns all that is known of a task.
func (r *Reader) Details(ctx context.Context, id envelope.ID) (client.TaskDetails, error) {
	file, err := r.Client.Details(ctx, id)
	if noTask(err) {
		err = r.unknown(id)
	}
	for i, run := range file.Runs {
		file.Runs[i].RefusedHosts = refusedHosts(run.Dir)
	}
	return file, err
}

// Asked returns tasks with their descriptions and what people were asked about each, and nothing else that Details
// has. An older daemon is asked for the details of each.
func (r *Reader) Asked(ctx context.Context, ids []envelope.ID) (map[envelope.ID]client.TaskDetails, error) {
	known := make(map[envelope.ID]client.TaskDetails, len(ids))
	all, err := r.Client.Asked(ctx, ids)
	if said, ok := errors.AsType[*client.Error](err); ok && said.Kind == client.NoRoute {
		for _, id := range ids {
			found, err := r.Details(ctx, id)
			if err != nil {
				return nil, err
			}
			request, _ := (&view.Details{TaskDetails: found}).Asked()
			found.Task.Description, found.Task.Labels = request.Description, found.Labels
			known[id] = found
		}
		return known, nil
	}
	for _, t := range all {
		known[t.Task.ID] = client.TaskDetails{Task: t.Task, Labels: t.Task.Labels, Approvals: t.Approvals}
	}
	return known, err
}

// ReadDialogue is client.Client.Thread or client.Client.Trace.
type ReadDialogue func(c *client.Client, ctx context.Context, id string) (client.Dialogue, error)

// Dialogue reads a conversation by its name, or by the beginning of the id of a task.
func (r *Reader) Dialogue(ctx context.Context, arg string, read ReadDialogue) (client.Dialogue, error) {
	none := exit.With(exit.NoTask, "no conversation, task or trace %q; see: mailboxd ps --all", arg)
	said, err := read(r.Client, ctx, arg)
	if !noTask(err) {
		return said, err
	}
	id, err := r.Find(ctx, arg)
	if err == nil {
		said, err = read(r.Client, ctx, string(id))
	}
	if noTask(err) || exit.CodeOf(err) == exit.NoTask {
		err = none
	}
	return said, err
}

// Replay reads a run by its name, or by the beginning of the id of one of its tasks.
func (r *Reader) Replay(ctx context.Context, arg string) (client.Replay, error) {
	none := exit.With(exit.NoTask, "no run or task %q; see: mailboxd ps --all", arg)
	found, err := r.Client.Replay(ctx, arg)
	if !noTask(err) {
		return found, err
	}
	id, err := r.Find(ctx, arg)
	if err == nil {
		found, err = r.Client.Replay(ctx, string(id))
	}
	if noTask(err) || exit.CodeOf(err) == exit.NoTask {
		err = none
	}
	return found, err
}

// Files returns the existing files of a task.
func (r *Reader) Files(f client.TaskDetails) []string {
	if r.Root == "" { // the mailbox of another user
		return nil
	}
	var all []string
	for _, run := range f.Runs {
		all = append(all, run.Dir)
	}
	for _, t := range f.Earlier {
		all = append(all, r.State.HistoryPath(t.ID, t.Revision))
	}
	all = append(all, filepath.Join(r.Root, "results", string(f.Task.ID)+".json"))
	return slices.DeleteFunc(all, func(path string) bool {
		_, err := os.Lstat(path)
		return err != nil
	})
}
