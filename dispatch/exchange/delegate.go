package exchange

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// delegation makes a submission of a delegated task: a child task, which is judged like any
// other. It returns the message as it is recorded.
func (g *Delegator) delegation(ctx context.Context, row task.Task, m envelope.Message, taken map[envelope.ID]bool) (*Submission, envelope.Message, error) {
	m, findings, err := g.request(ctx, row, m, taken)
	if err != nil {
		return nil, m, err
	}
	c := &Submission{Task: m.Request, Message: &m, lineage: lineage{tie: m.Tie, knownParent: &row}, Now: time.Now()}
	several := conversation.Combines(m)
	if m.Dialect == envelope.AINL && c.Task.Agent == envelope.Everybody || c.Task.Clutch.Routed() {
		c.Task.Agent, c.Task.Routed, several = envelope.Everybody, true, false
	}
	c.Judged, _ = g.judgeInContext(c, several, findings)
	c.Verdict = c.Judged
	if !c.Verdict.Admit {
		c.Refuse()
	}
	return c, m, nil
}

// request gives a delegated task a free id. The same delegation keeps its id, so that it is
// known again.
func (g *Delegator) request(ctx context.Context, row task.Task, m envelope.Message, taken map[envelope.ID]bool) (envelope.Message, envelope.Findings, error) {
	if m.Dialect == envelope.CLowl && m.Task == "" {
		m.Task = dialect.TaskID(m.ID)
	}
	m, err := g.asBefore(ctx, row, m)
	if err != nil {
		return m, nil, err
	}
	free, err := g.childID(ctx, row, m, taken)
	if err != nil {
		return m, nil, err
	}
	taken[free] = true
	if free != m.Task {
		own := m.Clutch
		if m = conversation.Renamed(m, free, ""); own != nil {
			m.Clutch.IdempotencyKey = own.IdempotencyKey // it is the agent's own request still
		}
		if m.Dialect == envelope.CLowl {
			m.ID = string(free)
		}
	}
	m.Request.ID, m.Request.Requester = m.Task, m.From
	if len(m.To) == 1 {
		m.Request.Agent = m.To[0]
	}
	raw := m.Raw
	t, findings := dialect.DecodeTask(m.Dialect, raw, g.Opts.Reading)
	if findings.Refused() || t.ID != m.Task || t.Requester != m.From {
		codec, ok := dialect.Of(m.Dialect)
		if !ok {
			return m, findings, nil
		}
		raw, _ = codec.Encode(m)
		t, findings = dialect.DecodeTask(m.Dialect, raw, g.Opts.Reading)
	}
	t.ID, t.Requester = m.Task, m.From
	m.Raw, m.Hash, m.Request = t.Raw, t.Hash, t
	return m, findings, nil
}

// asBefore returns a request of Clutch in the words of an earlier one, if that has the same task
// and command: only the message id, the time and the like differ (CLUTCH-53). A higher attempt is
// a new request.
func (g *Delegator) asBefore(ctx context.Context, row task.Task, m envelope.Message) (envelope.Message, error) {
	if m.Clutch == nil {
		return m, nil
	}
	last, found, err := g.Reader.Finder(ctx).Latest(m.Task)
	if err != nil || !found || last.Parent != row.Seq || last.Dialect != envelope.Clutch {
		return m, err
	}
	raw, err := g.Ledger.Raw(ctx, last.Seq)
	if errors.Is(err, ledger.ErrUnknown) { // too old to be kept
		return m, nil
	}
	if err != nil {
		return m, err
	}
	before, _ := dialect.DecodeTask(envelope.Clutch, raw, g.Opts.Reading)
	if conversation.SameClutch(envelope.Task{Raw: m.Raw, Clutch: m.Clutch}, before) && m.Clutch.Attempt <= before.Clutch.Attempt {
		m.Raw, m.Hash = raw, last.Hash
	}
	return m, nil
}

// childID returns the id of a delegated task: the id from its agent, unless another task has
// that id.
func (g *Delegator) childID(ctx context.Context, row task.Task, m envelope.Message, taken map[envelope.ID]bool) (envelope.ID, error) {
	if m.Task != "" && m.Task != row.ID && !taken[m.Task] {
		last, found, err := g.Reader.Finder(ctx).Latest(m.Task)
		if err != nil || !found || last.Parent == row.Seq && last.Hash == m.Hash {
			return m.Task, err
		}
	}
	return g.freeID(ctx, row.ID, "", taken)
}

// delegatedBefore reports whether a task was delegated before, and is over.
func (g *Delegator) delegatedBefore(ctx context.Context, row task.Task, id envelope.ID) (bool, error) {
	last, found, err := g.Reader.Finder(ctx).Latest(id)
	return found && last.Parent == row.Seq && last.State == task.Done, err
}

// maxNames limits the child ids that freeID tries.
const maxNames = 1000

// freeID returns a free child id of a task: "T1.2", or "T1.review".
func (g *Delegator) freeID(ctx context.Context, parent envelope.ID, word string, taken map[envelope.ID]bool) (envelope.ID, error) {
	for n := range maxNames {
		name := fmt.Sprintf("%s.%d", parent, n+1)
		if word != "" {
			if name = fmt.Sprintf("%s.%s", parent, word); n > 0 {
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
		if _, found, err := g.Reader.Finder(ctx).Latest(id); err != nil || !found {
			return id, err
		}
	}
	return envelope.ID(dialect.NewID()), nil
}

// acceptDelegated accepts a delegated task. The agent gets a refusal like any other end of the
// task.
func (g *Delegator) acceptDelegated(tx *store.Transaction, row task.Task, s outboundMessage, at time.Time) error {
	c := s.submission
	known, err := LookUpIDs(tx, []*Submission{c})
	if err != nil {
		return err
	}
	c.Verdict = c.Judged
	leader, otherCommand, err := checkCommand(tx, c)
	if err != nil {
		return err
	}
	why := dialect.FailureOf(envelope.DuplicateConflict, fmt.Sprintf("task %s is there already, and asks for something else", c.Task.ID))
	if last, found := known.rows[c.Task.ID]; found && (last.Parent != row.Seq || last.Hash != c.Task.Hash) {
		c.Disposition, c.Row = Conflict, task.Task{} // another task took the id since it was free
	} else if otherCommand.Message != "" {
		c.Disposition, c.Row, why.Message = Conflict, task.Task{}, otherCommand.Field+": "+otherCommand.Message
	} else if err := g.acceptAll(tx, known, c, leader); err != nil {
		return err
	}
	switch c.Disposition {
	case Accepted:
		m := s.message
		return g.Messenger.RecordFor(tx, c.Row, m, at, strings.Join(m.To, ","), task.ByRun, "")
	case Duplicate:
		return nil
	}
	return g.Messenger.RecordFor(tx, row, conversation.Error(s.message, row, why, time.Now()), at, row.Agent, task.ByDaemon, "")
}

// acceptAll accepts a delegated task. If the task is for several agents, it adds a request for
// each. A task follows the leader that carries the same command out, if there is one.
func (g *Delegator) acceptAll(tx *store.Transaction, known *KnownIDs, c *Submission, leader envelope.ID) (err error) {
	judged := c.Judged
	defer func() { c.Judged = judged }() // the transaction may run again
	c.Members, c.Verdict = nil, judged
	var names []string
	if leader != "" {
		c.Verdict = conversation.SameCommand(c.Task, c.Verdict.Findings)
	} else if names, err = g.Acceptor.requestedAgents(tx, c); err != nil {
		return err
	}
	c.Judged = c.Verdict
	if err := g.Acceptor.Accept(tx, known, c); err != nil || c.Disposition != Accepted {
		return err
	}
	if err := keepCommand(tx, c, leader); err != nil || len(names) == 0 || c.Row.State != task.Held {
		return err
	}
	return g.Acceptor.requestEach(tx, c, names)
}

// A Delegator records the messages of agents in their runs, and adds the tasks that they
// delegate.
type Delegator struct {
	*outbox.Base
	Acceptor *Acceptor
}

// emitAndMove records the messages of an agent's run, and then moves its task, so that what the
// agent said comes before the end of its task. It does neither, and reports false, when the task
// was moved since it was read. The caller calls wakeAll afterwards.
func (g *Delegator) emitAndMove(tx *store.Transaction, t *completion, c core.Command) (bool, error) {
	now, found, err := tx.Task(t.Row.Seq)
	if err != nil || !found || now.State != t.Row.State || now.Attempt != t.Row.Attempt {
		return false, err
	}
	if err := g.emitAll(tx, t); err != nil {
		return false, err
	}
	moved, err := g.move(tx, t, c)
	if err == nil && !moved { // else the messages would stay without the move
		err = fmt.Errorf("move task %d after its messages: %w", t.Row.Seq, core.ErrStale)
	}
	return moved, err
}

// wakeAll resumes the tasks that wait for a message of the run. An agent that waits for the reply
// to a refused message, or that has called a tool, runs again.
func (g *Delegator) wakeAll(tx *store.Transaction, t *completion) error {
	for _, s := range t.outbound {
		if s.about == nil {
			continue
		}
		if err := g.Messenger.WakeFor(tx, *s.about, s.message); err != nil {
			return err
		}
	}
	if !t.isRefused() && !t.hasReturned() || !conversation.AwaitsReply(t.Next) {
		return nil
	}
	next, _, err := g.Messenger.Wake(tx, t.Next, map[string]any{"from": envelope.Mailboxd})
	t.Next = next
	return err
}

// emitAll records the messages of an agent's run, with the time at which they were read, and
// applies their effects on other tasks.
func (g *Delegator) emitAll(tx *store.Transaction, t *completion) error {
	for i := range t.outbound {
		s := &t.outbound[i]
		s.about = nil
		if s.submission != nil {
			if err := g.acceptDelegated(tx, t.Row, *s, t.at); err != nil {
				return err
			}
			continue
		}
		about, named, err := tx.Finder().Resolve(s.message, t.Row)
		switch {
		case err != nil:
			return err
		case !named:
			about = t.Row
		}
		if s.message.Clutch != nil && conversation.OnlyRecorded(s.message.Act) {
			if _, err := tx.Record(outbox.RecordOf(s.message, task.ByRun, t.Row.Seq, t.at)); err != nil {
				return err
			}
			continue
		}
		if s.message.Returned != nil {
			if err := g.reply(tx, t, s.message, conversation.ReturnTool(s.message, t.Row, t.at)); err != nil {
				return err
			}
			continue
		}
		if reply, refused := conversation.Refuse(s.message, t.Row, t.at); refused {
			if err := g.reply(tx, t, s.message, reply); err != nil {
				return err
			}
			continue
		}
		if conversation.Cancels(s.message, about) {
			if err := g.emitCancel(tx, t, about, s.message); err != nil {
				return err
			}
			continue
		}
		if err := g.Messenger.RecordForAll(tx, about, s.message, t.at); err != nil {
			return err
		}
		s.about = &about
	}
	return nil
}

// reply records a message of an agent that mailboxd itself replies to at once, and the reply.
func (g *Delegator) reply(tx *store.Transaction, t *completion, m, reply envelope.Message) error {
	if _, err := tx.Record(outbox.RecordOf(m, task.ByRun, t.Row.Seq, t.at)); err != nil {
		return err
	}
	return g.Messenger.Emit(tx, m.Dialect, reply, t.Row.Seq, g.Messenger.InboxOf(t.Row.Agent))
}

// emitCancel cancels a task that the agent has requested, or a descendant of such a task
// (CLOWL-27). The agent is notified of the cancellation, or of the reason against it.
func (g *Delegator) emitCancel(tx *store.Transaction, t *completion, about task.Task, m envelope.Message) error {
	may, err := outbox.MayCancel(tx, about, t.Row.Agent)
	if err != nil {
		return err
	}
	record, why := outbox.RecordOf(m, task.ByRun, about.Seq, t.at), envelope.Failure{}
	record.Act = envelope.Cancels
	switch {
	case about.Seq == t.Row.Seq:
		why = unknownTask(m)
	case !may:
		why = dialect.FailureOf(envelope.Unauthorized, fmt.Sprintf("%s did not ask for %s", t.Row.Agent, about.ID))
	case about.State == task.Done:
		why = dialect.FailureOf(envelope.DuplicateConflict, fmt.Sprintf("%s is over already (%s)", about.ID, about.Status))
	}
	if why.Message != "" {
		record.Task = 0 // so that no later start cancels a task for it
	} else {
		conv, _, err := tx.Conversation(about.Seq)
		if err != nil {
			return err
		}
		record.Cause = conv.Message // the notification of the end finds the message by it
	}
	if _, err := tx.Record(record); err != nil {
		return err
	}
	if why.Message == "" {
		tx.CancelAfter(about.Seq, m)
		return nil
	}
	return g.Messenger.Emit(tx, m.Dialect, conversation.Error(m, t.Row, why, t.at), t.Row.Seq, g.Messenger.InboxOf(t.Row.Agent))
}

// judgeInContext lets policy decide on a request after the check of its context, and reports
// whether the inline context is used. A task of several agents belongs to the daemon and is not
// judged.
func (g *Delegator) judgeInContext(c *Submission, several bool, findings envelope.Findings) (v task.Verdict, degraded bool) {
	if several {
		c.Task.Agent = envelope.Mailboxd
		findings = append(findings, g.Reader.NearMisses(c.Task)...)
	}
	if !findings.Refused() {
		var context envelope.Findings
		context, degraded = g.Reader.CheckContext(*c.Message, c.Task.Agent)
		if findings = append(findings, context...); degraded {
			c.Task = c.Task.WithoutRef(c.Message.Context.Ref)
		}
	}
	if !several || findings.Refused() {
		return g.Reader.Judge(c.Task, findings, c.Now), degraded
	}
	return conversation.AdmitCombined(c.Task, findings), degraded
}

// move moves the task of a completion. It reports false when the task was moved since it was
// read.
func (g *Delegator) move(tx *store.Transaction, t *completion, c core.Command) (bool, error) {
	next, moved, err := g.Writer.DecideOn(tx, t.Row.Seq, false, c)
	if moved {
		t.moved, t.Next = true, next
	}
	return moved, err
}

// An outboundMessage is a message of an agent's run on its way into the ledger.
type outboundMessage struct {
	message    envelope.Message
	submission *Submission // of the task that it delegates; nil for none
	stale      bool        // the task was delegated before, and is over
	about      *task.Task  // what the message is about, once it is recorded; nil: it wakes nobody
}

// unknownTask returns the failure of a message that names no known task.
func unknownTask(m envelope.Message) envelope.Failure {
	why := dialect.FailureOf(envelope.ValidationFailed, fieldsOf[m.Dialect].about+": names no task here")
	why.Retry = false
	return why
}
