package reader

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/mailbox"
)

// Last names the newest task, in commands that only read.
const Last = "last"

// mostFound is how many ids Records.Find returns at most.
const mostFound = 8

// Find returns the task that arg names for a command that only reads: an id, the beginning
// of only one id, or Last. An id wins over Last and over ids that begin with it. A command
// that changes a task uses FindToChange.
func (r *Reader) Find(ctx context.Context, arg string) (envelope.ID, error) {
	ids, err := r.idsFrom(ctx, arg)
	switch {
	case err != nil:
		return "", err
	case len(ids) > 0 && string(ids[0]) == arg:
		return ids[0], nil
	case arg == Last:
		return r.latestSent(ctx)
	case len(ids) == 1:
		return ids[0], nil
	case len(ids) > 1:
		return "", exit.With(exit.Usage, "%q could be any of:%s", arg, r.candidates(ctx, ids))
	}
	if id, err := envelope.ParseID(arg); err == nil && r.Root != "" {
		if _, err := mailbox.ReadResult(r.Root, id); err == nil {
			return id, nil // the ledger was lost
		}
	}
	return "", noTaskNamed(arg)
}

// FindToChange returns the task that arg names for a command that decides about a task or
// changes it. Anyone who can write to the mailbox can choose the ids of tasks, so the
// answer must not depend on tasks that were added to mislead a person:
//   - Last is refused.
//   - The beginning of an id has at least view.LeastShort characters, and is that of only
//     one id.
//   - An id that is also the beginning of others is refused. It may be a UUID or shorter than
//     view.LeastShort, since no short id is; and its own runs may have asked for the others.
//
// With exact, arg is a whole id.
func (r *Reader) FindToChange(ctx context.Context, arg string, exact bool) (envelope.ID, error) {
	ids, err := r.idsFrom(ctx, arg)
	if err != nil {
		return "", err
	}
	is := len(ids) > 0 && string(ids[0]) == arg
	switch {
	case exact && is:
		return ids[0], nil
	case exact:
		return "", noTaskNamed(arg)
	case arg == Last:
		return "", exit.With(exit.Usage, "%q names the newest task only for commands that read; write the id of the task, or --exact for a task that is called %s", Last, Last)
	case len(ids) == 0:
		return "", noTaskNamed(arg)
	case is && (len(ids) == 1 || len(arg) < view.LeastShort || view.IsUUID(ids[0])):
		return ids[0], nil
	case is:
		return r.above(ctx, ids)
	case len(ids) > 1:
		return "", exit.With(exit.Usage, "%q could be any of:%s", arg, r.candidates(ctx, ids))
	case len(arg) < view.LeastShort:
		return "", exit.With(exit.Usage, "%q is too short to change a task by; write at least %d characters of %s", arg, view.LeastShort, term.OneLine(string(ids[0])))
	}
	return ids[0], nil
}

// above returns the first of some ids when runs of it, or of tasks below it, asked for all
// the others.
func (r *Reader) above(ctx context.Context, ids []envelope.ID) (envelope.ID, error) {
	below := ids[:1:1]
	for _, id := range ids[1:] { // a task sorts after the one whose id it begins with
		file, err := r.Details(ctx, id)
		if err != nil {
			return "", err
		}
		if !slices.Contains(below, file.Parent) {
			break
		}
		below = append(below, id)
	}
	if len(below) == len(ids) && len(ids) < mostFound {
		return ids[0], nil
	}
	return "", exit.With(exit.Usage, "%q is a task and also the beginning of others:%s\nfor the task %s itself, add --exact",
		ids[0], r.candidates(ctx, ids), term.OneLine(string(ids[0])))
}

// idsFrom returns the ids that begin with arg.
func (r *Reader) idsFrom(ctx context.Context, arg string) ([]envelope.ID, error) {
	return r.Client.Find(ctx, arg)
}

// candidates lists tasks with what distinguishes them, one in a line.
func (r *Reader) candidates(ctx context.Context, ids []envelope.ID) string {
	width := 0
	for _, id := range ids {
		width = max(width, term.Width(term.OneLine(string(id))))
	}
	var list strings.Builder
	for _, id := range ids {
		name, about := term.OneLine(string(id)), ""
		if t, err := r.Latest(ctx, id); err == nil { // the id alone is of use too
			about = view.StateWithReasons(t) + "  " + term.OneLine(t.Agent) + " for " + term.OneLine(t.Requester)
		}
		fmt.Fprintf(&list, "\n  %s%*s  %s", name, width-term.Width(name), "", about)
	}
	if len(ids) == mostFound {
		list.WriteString("\n  and perhaps more")
	}
	return list.String()
}

// latestSent returns the newest task of the user; without one, the newest of all.
func (r *Reader) latestSent(ctx context.Context) (envelope.ID, error) {
	if id := r.unread(ctx); id != "" {
		return id, nil
	}
	for _, requester := range []string{UserName(), ""} {
		tasks, err := r.Tasks(ctx, client.Filter{Requester: requester, NewestFirst: true, Limit: 1})
		if err != nil {
			return "", err
		}
		if len(tasks) > 0 {
			return tasks[0].ID, nil
		}
	}
	return "", exit.With(exit.NoTask, "there is no task yet; send one with: mailboxd send")
}

func noTaskNamed(arg string) error {
	return exit.With(exit.NoTask, "no task %q; see: mailboxd ps --all", arg)
}

// unknown returns the error for a task that the ledger does not have.
func (r *Reader) unknown(id envelope.ID) error {
	if r.Root == "" {
		return exit.With(exit.NoTask, "no task %s waits for your decision", id)
	}
	if _, err := mailbox.ReadResult(r.Root, id); err == nil {
		return exit.With(exit.NoTask, "nothing is known of %s but its result; see: %s", id, view.Command("result", id))
	}
	return exit.With(exit.NoTask, "task %s is %s", id, notTaken(r.served))
}
