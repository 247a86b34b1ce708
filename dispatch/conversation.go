package dispatch

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/task"
)

// A hearing is how much of a conversation a run was handed when it began. The
// zero value is nothing.
type hearing struct {
	message int64 // the Seq of the last message
	ended   int   // how many of the tasks that it needs had ended
}

// hearings know what the last run of a task that is not over has heard. One that an
// earlier daemon began has heard nothing, so its agent may be handed something twice.
type hearings struct {
	mu  sync.Mutex // guards all
	all map[int64]hearing
}

func newHearings() *hearings { return &hearings{all: map[int64]hearing{}} }

func (h *hearings) set(seq int64, one hearing) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[seq] = one
}

func (h *hearings) of(seq int64) hearing {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[seq]
}

func (h *hearings) forget(seq int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.all, seq)
}

// conversation is what a run of a task is handed beside the request: what was
// said to and by its agent about the task and those that belong to it, and what
// became of these. The first attempt at an AINL request has none.
func (d *Dispatcher) conversation(ctx context.Context, row task.Task) ([]envelope.Message, error) {
	if row.Attempt == 0 && row.Parent == 0 && row.Dialect == envelope.AINL {
		return nil, nil
	}
	said, err := d.Ledger.Conversation(ctx, row)
	if err != nil {
		return nil, err
	}
	ends, err := d.ends(ctx, row)
	if err != nil {
		return nil, err
	}
	heard := hearing{ended: len(ends)}
	var list []envelope.Message
	for _, m := range said {
		heard.message = max(heard.message, m.Seq)
		if worthTelling(row, m) {
			list = append(list, d.recall(m, row))
		}
	}
	list = append(list, ends...)
	slices.SortStableFunc(list, func(a, b envelope.Message) int { return a.Time.Compare(b.Time) })
	d.heard.set(row.Seq, heard)
	return list, nil
}

// worthTelling reports whether a message is part of what an agent goes on with.
// The request is handed over by itself, and the ends of other tasks are those
// that the tasks have.
func worthTelling(row task.Task, m task.Message) bool {
	switch m.Act {
	case envelope.Requests, envelope.Delegates:
		return m.Task != row.Seq
	case envelope.Accepts, envelope.Waits, envelope.Reports:
		return false
	case envelope.Completes, envelope.Fails, envelope.Stops:
		return m.Via != task.ByDaemon || m.Task == row.Seq && m.To == row.Agent
	}
	return m.Via != task.ByDaemon || m.From == envelope.Ourselves // else it is what was said in other words
}

// recall makes a message of what is remembered of it. What its line cannot say
// any more is taken from the books.
func (d *Dispatcher) recall(was task.Message, row task.Task) (m envelope.Message) {
	if codec, ok := dialect.Of(was.Dialect); ok {
		m, _ = codec.Decode(was.Body, d.opts.Reading)
	}
	m.Dialect, m.Act, m.ID, m.Cause, m.Thread, m.Trace = was.Dialect, was.Act, was.ID, was.Cause, was.Thread, was.Trace
	m.From, m.To, m.Time = was.From, strings.Split(was.To, ","), was.Time
	m.Task = cmp.Or(m.Task, row.ID)
	return m
}

// ends are what became of the tasks that a task needs, the oldest first.
func (d *Dispatcher) ends(ctx context.Context, row task.Task) ([]envelope.Message, error) {
	children, err := d.Ledger.Offspring(ctx, row.Seq)
	if err != nil {
		return nil, err
	}
	var ends []envelope.Message
	for _, c := range children {
		if !needed(c) || c.State != task.Done {
			continue
		}
		m, err := d.endOf(ctx, c)
		if err != nil {
			return nil, err
		}
		ends = append(ends, m)
	}
	return ends, nil
}

// endOf is what became of a task, as its agent says it to its requester.
func (d *Dispatcher) endOf(ctx context.Context, c task.Child) (envelope.Message, error) {
	result, err := d.answerOfChild(ctx, c.Task)
	if err != nil {
		return envelope.Message{}, err
	}
	known, _, err := d.Ledger.Talk(ctx, c.Seq)
	m := envelope.Message{
		Act: envelope.Completes, Task: c.ID, Cause: known.Message, Thread: known.Thread, Trace: known.Trace,
		From: c.Agent, To: []string{c.Requester}, Time: c.Finished, Type: c.Type, Text: result.Output.Summary, Answer: result,
	}
	m.Deterministic, m.Context = dialect.Beside(result)
	if result.Status != envelope.OK && result.Status != envelope.Partial {
		m.Act, m.Failure = envelope.Fails, conversation.Failure(result)
		m.Text = m.Failure.Message
	}
	return m, err
}

// answerOfChild is the result of a task that is done. One that a newer request
// has replaced has none.
func (d *Dispatcher) answerOfChild(ctx context.Context, row task.Task) (envelope.Result, error) {
	r := envelope.Result{TaskID: row.ID, AgentID: row.Agent, Status: row.Status, Error: envelope.Error{Kind: row.Kind}}
	if row.ResultSum == "" {
		return r, nil
	}
	raw, err := d.Ledger.Result(ctx, row.Seq)
	if err != nil {
		return r, err
	}
	if said, findings := envelope.DecodeResult(raw); !findings.Refused() && !neverItsEnd(row, raw) {
		return said, nil
	}
	return r, nil
}

// needed reports whether the agent of the task above waits for a task, or may.
func needed(c task.Child) bool {
	return c.Tie == envelope.Assist || c.Tie == envelope.Transfer || c.Tie == envelope.Member
}
