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
	"mailboxd/internal/api"
	"mailboxd/internal/client"
	"mailboxd/internal/exit"
	"mailboxd/internal/ledger"
	"mailboxd/mailbox"
)

// A Reader reads what the daemon knows, whether one serves or not.
type Reader struct {
	Location Location
	Root     string
	State    *mailbox.State // nil: no daemon has ever served this root
	Records  Records        // nil without state or ledger
	close    func() error   // closes Records

	served bool // a daemon serves, perhaps a busy one
}

// openLedger has the reader read the ledger, if there is one.
func (r *Reader) openLedger() error {
	memory, err := ledger.OpenReader(r.State.LedgerPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	r.Records, r.close = &api.Records{Root: r.Root, State: r.State, Ledger: memory}, memory.Close
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
	if r.Records == nil {
		return client.Task{}, exit.With(exit.NoTask, "no task %q", id)
	}
	task, err := r.Records.Latest(ctx, id)
	if noTask(err) {
		return client.Task{}, exit.With(exit.NoTask, "no task %q", id)
	}
	return task, err
}

// noTask reports whether an error says that the ledger has no such task.
func noTask(err error) bool {
	said, ok := errors.AsType[*client.Error](err)
	return errors.Is(err, ledger.ErrUnknown) || ok && said.Kind == client.NoTask
}

// Records are the questions that the daemon or the ledger answers. Only the daemon is
// asked while one serves, since an open ledger prevents its checkpoints.
type Records interface {
	Find(ctx context.Context, prefix string) ([]envelope.ID, error)
	Tasks(ctx context.Context, f client.Filter) ([]client.Task, error)
	Count(ctx context.Context, f client.Filter) (int, error)
	Latest(ctx context.Context, id envelope.ID) (client.Task, error)
	Details(ctx context.Context, id envelope.ID) (client.TaskDetails, error)
	Events(ctx context.Context, id envelope.ID, after int64, limit int) ([]client.Event, error)
	Files(ctx context.Context) ([]client.Cursor, error)
	Paused(ctx context.Context) ([]string, error)
	Balances(ctx context.Context, day string) ([]client.Balance, error)
	Stats(ctx context.Context, since time.Time) (client.Stats, error)
	Thread(ctx context.Context, id string) (client.Dialogue, error)
	Trace(ctx context.Context, id string) (client.Dialogue, error)
	Replay(ctx context.Context, run string) (client.Replay, error)
}

// ErrNoMailbox says that the mailbox does not exist.
var ErrNoMailbox = errors.New("there is no mailbox yet; start one with: mailboxd serve")

// Tasks lists the tasks that pass the filter.
func (r *Reader) Tasks(ctx context.Context, f client.Filter) ([]client.Task, error) {
	if r.Records == nil {
		return nil, nil
	}
	return r.Records.Tasks(ctx, f)
}

// count returns how many tasks pass the filter.
func (r *Reader) count(ctx context.Context, f client.Filter) (int, error) {
	if r.Records == nil {
		return 0, nil
	}
	return r.Records.Count(ctx, f)
}

// Paused returns the paused agents; "" stands for every agent.
func (r *Reader) Paused(ctx context.Context) ([]string, error) {
	if r.Records == nil {
		return nil, nil
	}
	return r.Records.Paused(ctx)
}

// Stats returns the sums since a time.
func (r *Reader) Stats(ctx context.Context, since time.Time) (client.Stats, error) {
	if r.Records == nil {
		return client.Stats{Since: since, Days: []client.DayStats{}, Queues: []client.QueueStats{}}, nil
	}
	return r.Records.Stats(ctx, since)
}

// Balances returns the accounts of a day.
func (r *Reader) Balances(ctx context.Context, day string) ([]client.Balance, error) {
	if r.Records == nil {
		return nil, nil
	}
	return r.Records.Balances(ctx, day)
}

// Details returns all that is known of a task.
func (r *Reader) Details(ctx context.Context, id envelope.ID) (client.TaskDetails, error) {
	file, err := client.TaskDetails{}, error(ledger.ErrUnknown)
	if r.Records != nil {
		file, err = r.Records.Details(ctx, id)
	}
	if noTask(err) {
		err = r.unknown(id)
	}
	for i, run := range file.Runs {
		file.Runs[i].RefusedHosts = refusedHosts(run.Dir)
	}
	return file, err
}

// Dialogue reads a conversation by its name, or by the beginning of the id of a task.
func (r *Reader) Dialogue(ctx context.Context, arg string, read func(context.Context, Records, string) (client.Dialogue, error)) (client.Dialogue, error) {
	none := exit.With(exit.NoTask, "no conversation, task or trace %q; see: mailboxd ps --all", arg)
	if r.Records == nil {
		return client.Dialogue{}, none
	}
	said, err := read(ctx, r.Records, arg)
	if !noTask(err) {
		return said, err
	}
	id, err := r.Find(ctx, arg)
	if err == nil {
		said, err = read(ctx, r.Records, string(id))
	}
	if noTask(err) || exit.CodeOf(err) == exit.NoTask {
		err = none
	}
	return said, err
}

// Replay reads a run by its name, or by the beginning of the id of one of its tasks.
func (r *Reader) Replay(ctx context.Context, arg string) (client.Replay, error) {
	none := exit.With(exit.NoTask, "no run or task %q; see: mailboxd ps --all", arg)
	if r.Records == nil {
		return client.Replay{}, none
	}
	found, err := r.Records.Replay(ctx, arg)
	if !noTask(err) {
		return found, err
	}
	id, err := r.Find(ctx, arg)
	if err == nil {
		found, err = r.Records.Replay(ctx, string(id))
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
