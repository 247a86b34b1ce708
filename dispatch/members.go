package dispatch

import (
	"fmt"
	"slices"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/conversation"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// requestedAgents returns the agents that a request for several is for. It refuses the
// submission when Everybody is nobody, or the request names too many.
func (ac *acceptor) requestedAgents(tx *transaction, c *submission) ([]string, error) {
	if !c.verdict.Admit || c.task.Agent != envelope.Ourselves {
		return nil, nil
	}
	to, most := conversation.Recipients(*c.said), ac.agents.Protocol.Broadcast
	field := fieldsOf[c.said.Dialect].to
	if !slices.Contains(to, envelope.Everybody) {
		if len(to) > most {
			ac.object(c, envelope.Finding{Kind: envelope.ValidationFailed, Field: field, Message: fmt.Sprintf("names %d agents, more than %d", len(to), most)})
		}
		return to, nil
	}
	speakers, err := tx.Speakers()
	if err != nil {
		return nil, err
	}
	announced := map[string][]string{}
	for _, s := range speakers {
		announced[s.Name] = s.Supports
	}
	to = slices.DeleteFunc(slices.Clone(ac.agents.Protocol.Takers(c.task.Type, announced)), func(name string) bool { return name == c.said.From })
	switch {
	case len(to) == 0:
		ac.object(c, envelope.Finding{Kind: envelope.NoCapableAgent, Field: field, Message: fmt.Sprintf("nobody here takes %q", c.task.Type)})
	case len(to) > most:
		c.warn(field, fmt.Sprintf("%d agents take it, and only the first %d are asked", len(to), most))
		to = to[:most]
	}
	return to, nil
}

// requestEach adds a task for each of several agents below the one that combines their
// answers (CLOWL-09).
func (ac *acceptor) requestEach(tx *transaction, c *submission, names []string) error {
	for _, name := range names {
		member, err := ac.memberRequest(tx, c, name)
		if err != nil {
			return err
		}
		if err := ac.revise(tx, member, task.Task{}, false); err != nil {
			return err
		}
		if _, err := tx.Record(recordOf(*member.said, task.ByDaemon, member.row.Seq, c.now)); err != nil {
			return err
		}
		c.members = append(c.members, member)
	}
	return nil
}

// memberRequest returns a request for several agents as a request of one of them.
func (ac *acceptor) memberRequest(tx *transaction, c *submission, name string) (*submission, error) {
	m := *c.said
	m.Raw, m.Hash, m.Secret = nil, "", ""
	m.ID, m.Cause, m.To, m.Time = dialect.NewID(), c.said.ID, []string{name}, c.now
	codec, _ := dialect.Of(m.Dialect)
	line, _ := codec.Encode(m)
	said, findings := codec.Decode(line, ac.opts.Reading)
	above := c.row
	member := &submission{line: c.line, task: said.Request, said: &said, tie: envelope.Member, above: &above, parent: &above, now: c.now, fate: accepted}
	member.task.Agent = name
	member.judged = ac.reader.judge(member.task, findings, c.now)
	member.verdict = member.judged
	if member.verdict.Admit && c.parent != nil {
		lineage, err := ac.reader.lineage(tx.Task, *c.parent, 0)
		if err != nil {
			return nil, err
		}
		member.verdict = core.Object(member.verdict, ac.agents.Mode(envelope.ControlLineage), lineage.Objection(name))
	}
	if !member.verdict.Admit {
		member.refuse()
	}
	return member, nil
}
