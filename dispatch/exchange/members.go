package exchange

import (
	"fmt"
	"slices"

	"mailboxd/dispatch/outbox"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// requestedAgents returns the agents of a request for several agents. It refuses the submission
// when Everybody stands for no agent, or when the request names too many.
func (ac *Acceptor) requestedAgents(tx *store.Transaction, c *Submission) ([]string, error) {
	if !c.Verdict.Admit || c.Task.Agent != envelope.Mailboxd {
		return nil, nil
	}
	to, limit := conversation.Recipients(*c.Message), ac.Agents.Protocol.Broadcast
	field := fieldsOf[c.Message.Dialect].to
	if !slices.Contains(to, envelope.Everybody) {
		if len(to) > limit {
			ac.refuse(c, envelope.Finding{Kind: envelope.ValidationFailed, Field: field, Message: fmt.Sprintf("names %d agents, more than %d", len(to), limit)})
		}
		return to, nil
	}
	announcements, err := tx.Announcements()
	if err != nil {
		return nil, err
	}
	announced := map[string][]string{}
	for _, a := range announcements {
		announced[a.Name] = a.Supports
	}
	to = slices.DeleteFunc(slices.Clone(ac.Agents.Protocol.Takers(c.Task.Type, announced)), func(name string) bool { return name == c.Message.From })
	switch {
	case len(to) == 0:
		ac.refuse(c, envelope.Finding{Kind: envelope.NoCapableAgent, Field: field, Message: fmt.Sprintf("nobody here takes %q", c.Task.Type)})
	case len(to) > limit:
		c.warn(field, fmt.Sprintf("%d agents take it, and only the first %d are asked", len(to), limit))
		to = to[:limit]
	}
	return to, nil
}

// requestEach adds a task for each of several agents. Their parent combines the answers
// (CLOWL-09).
func (ac *Acceptor) requestEach(tx *store.Transaction, c *Submission, names []string) error {
	for _, name := range names {
		member, err := ac.memberRequest(tx, c, name)
		if err != nil {
			return err
		}
		if err := ac.revise(tx, member, task.Task{}, false); err != nil {
			return err
		}
		if _, err := tx.Record(outbox.RecordOf(*member.Message, task.ByDaemon, member.Row.Seq, c.Now)); err != nil {
			return err
		}
		c.Members = append(c.Members, member)
	}
	return nil
}

// memberRequest returns a request for several agents as a request for one of them.
func (ac *Acceptor) memberRequest(tx *store.Transaction, c *Submission, name string) (*Submission, error) {
	m := *c.Message
	m.Raw, m.Hash, m.Secret = nil, "", ""
	m.ID, m.Cause, m.To, m.Time = dialect.NewID(), c.Message.ID, []string{name}, c.Now
	if m.Clutch != nil {
		m = conversation.Renamed(m, envelope.ID(dialect.NewID()), c.Row.ID)
		m.ID = dialect.NewMessageID(m.Dialect)
	}
	codec, _ := dialect.Of(m.Dialect)
	line, _ := codec.Encode(m)
	decoded, findings := codec.Decode(line, ac.Opts.Reading)
	parent := c.Row
	member := &Submission{
		Line: c.Line, Task: decoded.Request, Message: &decoded, Now: c.Now,
		lineage:    lineage{tie: envelope.Member, knownParent: &parent, parent: &parent},
		acceptance: acceptance{Disposition: Accepted},
	}
	member.Task.Agent = name
	member.Judged = ac.Reader.Judge(member.Task, findings, c.Now)
	member.Verdict = member.Judged
	if member.Verdict.Admit && c.parent != nil {
		lineage, err := ac.Reader.Lineage(tx.Task, *c.parent, 0)
		if err != nil {
			return nil, err
		}
		member.Verdict = core.Object(member.Verdict, ac.Agents.Mode(envelope.ControlLineage), lineage.Objection(name))
	}
	if !member.Verdict.Admit {
		member.Refuse()
	}
	return member, nil
}
