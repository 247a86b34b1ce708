package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/journal"
	"mailboxd/internal/task"
)

// ErrUnknown says that the ledger has no such task, or no such body of it.
var ErrUnknown = errors.New("is not in the ledger")

// A Reader answers questions. It never writes, and never waits for the writer, unless Instead
// does. It may be used from several goroutines at once. Each call sees one moment; two calls
// may see two.
type Reader struct {
	db      *sql.DB
	read    *statements
	Journal string // the directory of the journal that has the bodies
	built   bool   // of the journal, just now
}

func newReader(path string) (*Reader, error) { return openURI(readURI(path)) }

// Instead has a function asked before each query. If it returns a reader, that one answers.
// Instead is called before anybody reads.
func (r *Reader) Instead(reader func() (*Reader, error)) { r.read.instead = reader }

// Close ends reading.
func (r *Reader) Close() error { return errors.Join(r.read.close(), r.db.Close()) }

// Task returns the revision with this Seq; ErrUnknown when there is none.
func (r *Reader) Task(ctx context.Context, seq int64) (task.Task, error) {
	t, ok, err := first(ctx, r.read, scanTask, "SELECT "+taskColumns+" FROM tasks WHERE seq = ?", seq)
	return known(t, ok, err, "read task", seq)
}

// Stored is Task with the places of the bodies. It reports false when there is none.
func (r *Reader) Stored(ctx context.Context, seq int64) (Task, bool, error) {
	return first(ctx, r.read, scanStored, "SELECT "+storedColumns+" FROM tasks WHERE seq = ?", seq)
}

// Raw returns the line of the revision with this Seq, as it came; ErrUnknown when there is
// none.
func (r *Reader) Raw(ctx context.Context, seq int64) ([]byte, error) {
	return r.body(ctx, "read request of task", "SELECT request FROM tasks WHERE seq = ?", seq)
}

// Result returns the bytes of the result of the revision with this Seq; ErrUnknown when
// there is none yet.
func (r *Reader) Result(ctx context.Context, seq int64) ([]byte, error) {
	return r.body(ctx, "read result of task", "SELECT result FROM tasks WHERE seq = ?", seq)
}

// Withheld returns the result of the revision with this Seq that an approver did not let
// out; ErrUnknown when there is none, or it is not kept any more.
func (r *Reader) Withheld(ctx context.Context, task int64) ([]byte, error) {
	return r.body(ctx, "read withheld result of task",
		"SELECT answer FROM approvals WHERE task = ? AND answer <> '' ORDER BY seq DESC LIMIT 1", task)
}

func (r *Reader) body(ctx context.Context, verb, query string, seq int64) ([]byte, error) {
	at, _, err := first(ctx, r.read, onePlace, query, seq)
	var b []byte
	if err == nil && at != (Place{}) {
		b, err = r.Body(at)
	}
	return known(b, at != (Place{}), err, verb, seq)
}

func onePlace(r row) (p Place, err error) {
	err = r.Scan(scanPlace{&p})
	return p, err
}

// Body reads a body of the journal; ErrUnknown when it was purged.
func (r *Reader) Body(at Place) ([]byte, error) {
	text, err := journal.ReadBody(r.Journal, at.Place, at.Body)
	if errors.Is(err, journal.ErrPurged) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	return content(at.Body, text)
}

func known[T any](v T, ok bool, err error, verb string, seq int64) (T, error) {
	if err == nil && !ok {
		err = ErrUnknown
	}
	if err != nil {
		return v, fmt.Errorf("%s %d: %w", verb, seq, err)
	}
	return v, nil
}

// list is all with an error that says what was listed.
func list[T any](ctx context.Context, r *Reader, scan func(row) (T, error), what, query string, args ...any) ([]T, error) {
	found, err := all(ctx, r.read, scan, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, err)
	}
	return found, nil
}

// Revisions returns every revision of an id, the first one first; none when the id is not
// known.
func (r *Reader) Revisions(ctx context.Context, id envelope.ID) ([]task.Task, error) {
	return list(ctx, r, scanTask, "revisions of "+string(id), "SELECT "+taskColumns+" FROM tasks WHERE id = ? ORDER BY revision", string(id))
}

// Latest returns the highest revisions of ids, with the places of their bodies. Ids that are
// not known are left out.
func (r *Reader) Latest(ctx context.Context, ids []envelope.ID) (found []Task, err error) {
	asked := make([]any, len(ids))
	for i, id := range ids {
		asked[i] = string(id)
	}
	for _, n := range steps {
		for ; len(asked) >= n; asked = asked[n:] {
			some, err := all(ctx, r.read, scanStored, latestQueries[n], asked[:n]...)
			if err != nil {
				return nil, fmt.Errorf("look up %d tasks: %w", n, err)
			}
			found = append(found, some...)
		}
	}
	return found, nil
}

var latestQueries = func() map[int]string {
	queries := map[int]string{}
	for _, n := range steps {
		queries[n] = "SELECT " + storedColumns + " FROM tasks WHERE latest = 1 AND id IN (" + strings.Repeat("?, ", n-1) + "?)"
	}
	return queries
}()

// maxFound is as many ids as Find returns: enough to say that a prefix is not unique.
const maxFound = 8

// Find returns the ids that begin with prefix, in byte order, so that the id which is the
// prefix comes first; at most 8 of them.
func (r *Reader) Find(ctx context.Context, prefix string) ([]envelope.ID, error) {
	past := prefix + "\xff" // sorts after every id that begins so: no text has this byte
	ids, err := all(ctx, r.read, one[envelope.ID],
		"SELECT DISTINCT id FROM tasks WHERE id >= ? AND id < ? ORDER BY id LIMIT ?", prefix, past, maxFound)
	if err != nil {
		return nil, fmt.Errorf("find task %s: %w", prefix, err)
	}
	return ids, nil
}

// A Filter says which tasks to list. Its zero value lists the latest revision of every task,
// oldest first.
type Filter struct {
	States      []task.State // only these; nil: any
	Agent       string       // "": any
	Requester   string       // "": any
	Since       time.Time
	AfterSeq    int64 // what comes after it in the order asked for; 0: from the start
	NewestFirst bool
	All         bool // earlier revisions too
	Limit       int  // 0: no limit
}

// Tasks returns the tasks that pass the filter, in order of Seq. If the filter leaves out
// Done, the done ones cost nothing.
func (r *Reader) Tasks(ctx context.Context, f Filter) ([]task.Task, error) {
	where, args := f.where()
	query := "SELECT " + taskColumns + " FROM tasks" + where + " ORDER BY seq ASC"
	if f.NewestFirst {
		query = "SELECT " + taskColumns + " FROM tasks" + where + " ORDER BY seq DESC"
	}
	if f.Limit > 0 {
		query, args = query+" LIMIT ?", append(args, f.Limit)
	}
	return list(ctx, r, scanTask, "tasks", query, args...)
}

// Count returns how many tasks pass the filter, whatever its AfterSeq, NewestFirst and
// Limit. For a million open ones it takes a quarter of a second.
func (r *Reader) Count(ctx context.Context, f Filter) (int, error) {
	f.AfterSeq = 0
	where, args := f.where()
	n, _, err := first(ctx, r.read, one[int], "SELECT count(*) FROM tasks"+where, args...)
	if err != nil {
		return 0, fmt.Errorf("count tasks: %w", err)
	}
	return n, nil
}

// where is the condition of the filter, and its arguments.
func (f Filter) where() (string, []any) {
	var where []string
	var args []any
	need := func(yes bool, condition string, values ...any) {
		if yes {
			where, args = append(where, condition), append(args, values...)
		}
	}
	after := "seq > ?"
	if f.NewestFirst {
		after = "seq < ?"
	}
	states := f.states()
	need(!slices.Contains(states, any(string(task.Done))), "state <> 'done'") // as the partial index has it
	need(len(states) < len(task.States()), "state IN ("+strings.Join(slices.Repeat([]string{"?"}, len(states)), ", ")+")", states...)
	need(f.Agent != "", "agent = ?", f.Agent)
	need(f.Requester != "", "requester = ?", f.Requester)
	need(!f.Since.IsZero(), "received >= ?", f.Since.UnixMicro())
	need(f.AfterSeq > 0, after, f.AfterSeq)
	need(!f.All, "latest = 1")
	if len(where) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(where, " AND "), args
}

// states returns the states that pass, as arguments of a query.
func (f Filter) states() (pass []any) {
	for _, s := range task.States() {
		if f.States == nil || slices.Contains(f.States, s) {
			pass = append(pass, string(s))
		}
	}
	return pass
}
