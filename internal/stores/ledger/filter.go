package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// A Filter says which tasks to list. Its zero value lists the latest revision
// of every task, oldest first.
type Filter struct {
	States      []task.State // only these; nil: any
	Agent       string       // "": any
	Requester   string       // "": any
	Type        string       // "": any
	Since       time.Time
	AfterSeq    int64 // what comes after it in the order asked for; 0: from the start
	NewestFirst bool
	All         bool // earlier revisions too
	Limit       int  // 0: no limit

	Statuses []envelope.Status // only results with one of these; nil: any
	Kind     envelope.Kind     // of the error of a result; "": any

	Reasons []task.Reason // only tasks that are held for one of these; nil: any

	CallbackFailed bool // only tasks that are Done and lack a callback
}

// Tasks returns the tasks that pass the filter, in order of Seq. Where the
// filter leaves out Done, what is done costs nothing.
func (r *Reader) Tasks(ctx context.Context, f Filter) ([]task.Task, error) {
	return listed(ctx, r, f, taskColumns, scanTask)
}

// listed lists columns of the tasks that pass a filter.
func listed[T any](ctx context.Context, r *Reader, f Filter, columns string, scan func(row) (T, error)) ([]T, error) {
	query, args := f.query(columns)
	rows, err := r.db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	list, err := drain(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("list tasks: %w", err)
	}
	return list, nil
}

// A Text is what a search looks at.
type Text struct {
	Row     task.Task // only Seq, ID, Agent, Requester, Type and Dialect
	Request []byte    // nil for one that is no longer kept
}

const textColumns = "seq, id, agent, requester, type, dialect, (SELECT body FROM requests WHERE task = seq)"

func scanText(r row) (t Text, err error) {
	return t, r.Scan(&t.Row.Seq, &t.Row.ID, &t.Row.Agent, &t.Row.Requester, &t.Row.Type, &t.Row.Dialect, &t.Request)
}

// Texts returns the texts of the tasks that pass the filter, in order of Seq.
func (r *Reader) Texts(ctx context.Context, f Filter) ([]Text, error) {
	return listed(ctx, r, f, textColumns, scanText)
}

// TasksOf returns tasks by their Seqs.
func (r *Reader) TasksOf(ctx context.Context, seqs []int64) (map[int64]task.Task, error) {
	found := make(map[int64]task.Task, len(seqs))
	err := inSteps(seqs, func(some []any) error {
		query := "SELECT " + taskColumns + " FROM tasks WHERE seq IN (?" + strings.Repeat(", ?", len(some)-1) + ")"
		tasks, err := all(ctx, r.read, scanTask, query, some...)
		for _, t := range tasks {
			found[t.Seq] = t
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read tasks: %w", err)
	}
	return found, nil
}

// Count returns how many tasks pass the filter, whatever its AfterSeq,
// NewestFirst and Limit. Of a million that are open, where the filter leaves out
// Done, that takes a quarter of a second.
func (r *Reader) Count(ctx context.Context, f Filter) (int, error) {
	f.AfterSeq = 0
	where, args := f.where()
	n, _, err := first(ctx, r.read, one[int], "SELECT count(*) FROM tasks"+where, args...)
	if err != nil {
		return 0, fmt.Errorf("count tasks: %w", err)
	}
	return n, nil
}

func (f Filter) query(columns string) (string, []any) {
	where, args := f.where()
	query := "SELECT " + columns + " FROM tasks" + where + " ORDER BY seq "
	if f.NewestFirst {
		query += "DESC"
	} else {
		query += "ASC"
	}
	if f.Limit > 0 {
		query += " LIMIT ?"
		args = append(args, f.Limit)
	}
	return query, args
}

// where is the condition of the filter, and its arguments.
func (f Filter) where() (string, []any) {
	var (
		where []string
		args  []any
	)
	need := func(yes bool, condition string, values ...any) {
		if yes {
			where = append(where, condition)
			args = append(args, values...)
		}
	}
	after := "seq > ?"
	if f.NewestFirst {
		after = "seq < ?"
	}
	states, statuses := argumentsOf(f.states()), argumentsOf(f.Statuses)
	need(!slices.Contains(f.states(), task.Done), "state <> 'done'") // as the partial index has it
	need(len(states) < len(task.States()), "state IN ("+marks(len(states))+")", states...)
	need(len(statuses) > 0, "status IN ("+marks(len(statuses))+")", statuses...)
	reasons := make([]string, len(f.Reasons))
	for i := range reasons {
		reasons[i] = "instr(',' || reasons || ',', ',' || ? || ',') > 0"
	}
	need(len(reasons) > 0, "("+strings.Join(reasons, " OR ")+")", argumentsOf(f.Reasons)...)
	need(f.Kind != "", "kind = ?", f.Kind)
	need(f.Type != "", "type = ?", f.Type)
	need(f.CallbackFailed, unsettled+" AND put = 1")
	need(f.Agent != "", "agent = ?", f.Agent)
	need(f.Requester != "", "requester = ?", f.Requester)
	need(!f.Since.IsZero(), "received >= ?", micros(f.Since))
	need(f.AfterSeq > 0, after, f.AfterSeq)
	need(!f.All, "latest = 1")
	if len(where) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(where, " AND "), args
}

// states returns the states that pass.
func (f Filter) states() (pass []task.State) {
	for _, s := range task.States() {
		if f.States == nil || slices.Contains(f.States, s) {
			pass = append(pass, s)
		}
	}
	return pass
}

// argumentsOf returns texts as arguments of a query.
func argumentsOf[T ~string](texts []T) (args []any) {
	for _, text := range texts {
		args = append(args, string(text))
	}
	return args
}

// marks are the places of n arguments in a query.
func marks(n int) string { return strings.Join(slices.Repeat([]string{"?"}, n), ", ") }
