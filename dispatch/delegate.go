package dispatch

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/core"
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

// A delegator records what agents say in their runs, and adds the tasks that they hand on.
type delegator struct {
	*base
	acceptor *acceptor
}

// emitAll records the messages of an agent's run as of the time they were read, and does
// what follows from them.
func (g *delegator) emitAll(tx *transaction, t *turn) error {
	for _, s := range t.outbound {
		if s.submission != nil {
			if err := g.acceptDelegated(tx, t.row, s, t.at); err != nil {
				return err
			}
			continue
		}
		about, named, err := tx.finder().resolve(s.message, t.row)
		switch {
		case err != nil:
			return err
		case !named:
			about = t.row
		}
		if conversation.Cancels(s.message, about) {
			if err := g.emitCancel(tx, t, about, s.message); err != nil {
				return err
			}
			continue
		}
		if err := g.messenger.emitToAll(tx, about, s.message, t.at); err != nil {
			return err
		}
	}
	return nil
}

// emitCancel has a task cancelled that the agent of a turn has asked for, or that is
// part of such a task (CLOWL-27). The agent is told when it is cancelled, or why it is
// not.
func (g *delegator) emitCancel(tx *transaction, t *turn, about task.Task, m envelope.Message) error {
	may, err := mayCancel(tx, about, t.row.Agent)
	if err != nil {
		return err
	}
	record, why := recordOf(m, task.ByRun, about.Seq, t.at), envelope.Failure{}
	record.Act = envelope.Cancels
	switch {
	case about.Seq == t.row.Seq:
		why = unknownTask(m)
	case !may:
		why = dialect.FailureOf(envelope.Unauthorized, fmt.Sprintf("%s did not ask for %s", t.row.Agent, about.ID))
	case about.State == task.Done:
		why = dialect.FailureOf(envelope.DuplicateConflict, fmt.Sprintf("%s is over already (%s)", about.ID, about.Status))
	}
	if why.Message != "" {
		record.Task = 0 // it cancels nothing, at no start either
	} else {
		talk, _, err := tx.Talk(about.Seq)
		if err != nil {
			return err
		}
		record.Cause = talk.Message // by which the notification of the end finds it
	}
	if _, err := tx.Record(record); err != nil {
		return err
	}
	if why.Message == "" {
		tx.cancelAfter(about.Seq, m)
		return nil
	}
	return g.messenger.emit(tx, m.Dialect, conversation.Error(m, t.row, why, t.at), t.row.Seq, g.messenger.inboxOf(t.row.Agent))
}

// judgeInContext lets policy decide on a request once its context is there, and reports
// whether that is the inline one. A task of several agents is the daemon's, and not judged.
func (g *delegator) judgeInContext(c *submission, several bool, findings envelope.Findings) (v task.Verdict, degraded bool) {
	if several {
		c.task.Agent = envelope.Ourselves
	}
	if !findings.Refused() {
		var context envelope.Findings
		context, degraded = g.reader.checkContext(*c.said, c.task.Agent)
		if findings = append(findings, context...); degraded {
			c.task = withoutContext(c.task, c.said.Context.Ref)
		}
	}
	if !several || findings.Refused() {
		return g.reader.judge(c.task, findings, c.now), degraded
	}
	return conversation.AdmitCombined(c.task, findings), degraded
}

// move moves the task of a turn, and reports whether it did: not when somebody has moved
// it since.
func (g *delegator) move(tx *transaction, t *turn, c core.Command) (bool, error) {
	next, moved, err := g.writer.decideOn(tx, t.row.Seq, false, c)
	if moved {
		t.moved, t.next = true, next
	}
	return moved, err
}

// An outboundMessage is a message of an agent's run on its way into the ledger.
type outboundMessage struct {
	message    envelope.Message
	submission *submission // of the task that it delegates; nil for none
	stale      bool        // that task was delegated before, and is over
}

// unknownTask is the failure of a message that names no task.
func unknownTask(m envelope.Message) envelope.Failure {
	why := dialect.FailureOf(envelope.ValidationFailed, fieldsOf[m.Dialect].about+": names no task here")
	why.Retry = false
	return why
}
