package dispatch

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/task"
)

// delegation makes a submission of what a task delegates: a task below it, which is judged
// like any other. It returns the message as it is recorded.
func (g *delegator) delegation(ctx context.Context, row task.Task, m envelope.Message, taken map[envelope.ID]bool) (*submission, envelope.Message, error) {
	m, findings, err := g.request(ctx, row, m, taken)
	if err != nil {
		return nil, m, err
	}
	c := &submission{task: m.Request, said: &m, tie: m.Tie, above: &row, now: time.Now()}
	c.judged, _ = g.judgeInContext(c, conversation.Combines(m), findings)
	c.verdict = c.judged
	if !c.verdict.Admit {
		c.refuse()
	}
	return c, m, nil
}

// request gives a delegated task a name that is free. The same delegation keeps its
// name, so that it is known again.
func (g *delegator) request(ctx context.Context, row task.Task, m envelope.Message, taken map[envelope.ID]bool) (envelope.Message, envelope.Findings, error) {
	if m.Dialect == envelope.CLowl && m.Task == "" {
		m.Task = dialect.TaskID(m.ID)
	}
	free, err := g.childID(ctx, row, m, taken)
	if err != nil {
		return m, nil, err
	}
	taken[free] = true
	if free != m.Task {
		m.Task, m.Raw = free, nil
		if m.Dialect == envelope.CLowl {
			m.ID = string(free)
		}
	}
	m.Request.ID, m.Request.Requester = m.Task, m.From
	if len(m.To) == 1 {
		m.Request.Agent = m.To[0]
	}
	raw := m.Raw
	t, findings := dialect.DecodeTask(m.Dialect, raw, g.opts.Reading)
	if findings.Refused() || t.ID != m.Task || t.Requester != m.From {
		codec, ok := dialect.Of(m.Dialect)
		if !ok {
			return m, findings, nil
		}
		raw, _ = codec.Encode(m)
		t, findings = dialect.DecodeTask(m.Dialect, raw, g.opts.Reading)
	}
	t.ID, t.Requester = m.Task, m.From
	m.Raw, m.Hash, m.Request = t.Raw, t.Hash, t
	return m, findings, nil
}

// childID returns the name of a delegated task: the one that its agent gave it, unless
// that is the name of another task.
func (g *delegator) childID(ctx context.Context, row task.Task, m envelope.Message, taken map[envelope.ID]bool) (envelope.ID, error) {
	if m.Task != "" && m.Task != row.ID && !taken[m.Task] {
		last, found, err := g.reader.finder(ctx).latest(m.Task)
		if err != nil || !found || last.Parent == row.Seq && last.Hash == m.Hash {
			return m.Task, err
		}
	}
	return g.freeID(ctx, row.ID, "", taken)
}

// delegatedBefore reports whether a task was delegated before, and is over.
func (g *delegator) delegatedBefore(ctx context.Context, row task.Task, id envelope.ID) (bool, error) {
	last, found, err := g.reader.finder(ctx).latest(id)
	return found && last.Parent == row.Seq && last.State == task.Done, err
}

// maxNames is how many names below a task are tried.
const maxNames = 1000

// freeID returns a free name below that of a task: "T1.2", or "T1.review".
func (g *delegator) freeID(ctx context.Context, above envelope.ID, word string, taken map[envelope.ID]bool) (envelope.ID, error) {
	for n := range maxNames {
		name := fmt.Sprintf("%s.%d", above, n+1)
		if word != "" {
			if name = fmt.Sprintf("%s.%s", above, word); n > 0 {
				name = fmt.Sprintf("%s%d", name, n+1)
			}
		}
		id, err := envelope.ParseID(name)
		if err != nil {
			break
		}
		if taken[id] {
			continue
		}
		if _, found, err := g.reader.finder(ctx).latest(id); err != nil || !found {
			return id, err
		}
	}
	return envelope.ID(dialect.NewID()), nil
}

// acceptDelegated accepts a delegated task. The agent gets a refusal as any other end of
// the task.
func (g *delegator) acceptDelegated(tx *transaction, row task.Task, s outboundMessage, at time.Time) error {
	c := s.submission
	known, err := lookUp(tx, []*submission{c})
	if err != nil {
		return err
	}
	if last, found := known.rows[c.task.ID]; found && (last.Parent != row.Seq || last.Hash != c.task.Hash) {
		c.fate, c.row = conflict, task.Task{} // somebody has taken the name since it was free
	} else if err := g.acceptAll(tx, known, c); err != nil {
		return err
	}
	switch c.fate {
	case accepted:
		tx.follow.accepted = append(tx.follow.accepted, c)
		m := s.message
		return g.messenger.recordFor(tx, c.row, m, at, strings.Join(m.To, ","), task.ByRun, "")
	case duplicate:
		return nil
	}
	why := dialect.FailureOf(envelope.DuplicateConflict, fmt.Sprintf("task %s is there already, and asks for something else", c.task.ID))
	return g.messenger.recordFor(tx, row, conversation.Error(s.message, row, why, time.Now()), at, row.Agent, task.ByDaemon, "")
}

// acceptAll accepts a delegated task and, where it is for several agents, requests each.
func (g *delegator) acceptAll(tx *transaction, known *known, c *submission) error {
	judged := c.judged
	defer func() { c.judged = judged }() // for the transaction may be run again
	c.members, c.verdict = nil, judged
	names, err := g.acceptor.requestedAgents(tx, c)
	if err != nil {
		return err
	}
	c.judged = c.verdict
	if err := g.acceptor.accept(tx, known, c); err != nil || len(names) == 0 || c.row.State != task.Held {
		return err
	}
	return g.acceptor.requestEach(tx, c, names)
}
