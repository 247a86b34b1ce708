package api

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// decisions are the routes for people who decide about the tasks of others.
func (d *Server) decisions() []route {
	verb := func(name, about string, do func(context.Context, envelope.ID, core.Person, string) error) route {
		return route{"POST", "/tasks/{id}/" + name, about, "", client.Decision{}, client.Task{}, d.decide(name, do)}
	}
	return []route{
		{"GET", "/tasks/{id}/statement", "What an approver signs to decide about a task, and the proof that the decision needs.",
			"decision=approved|denied, as, seen", nil, client.Statement{}, d.statement},
		verb("approve", "Lets a task go on that waits for a person. Only for approvers, and not for the requester of the task.", d.engine.Approve),
		verb("deny", "Ends a task that waits for a person. Its note is the reason, and needed.", d.engine.Deny),
	}
}

// decide records the decision of a person about a task, and answers with the changed task.
func (d *Server) decide(verb string, do func(context.Context, envelope.ID, core.Person, string) error) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		id, err := idIn(r)
		if err != nil {
			return nil, err
		}
		var word client.Decision
		if err := read(r, &word); err != nil {
			return nil, err
		}
		who, err := d.person(r, verb, id, word.As)
		if err != nil {
			return nil, err
		}
		if err := checkDecision(verb, word); err != nil {
			return nil, err
		}
		if who, err = d.proven(r.Context(), who, verb, id, word); err != nil {
			return nil, err
		}
		err = do(r.Context(), id, who, word.Note)
		if _, said := errors.AsType[*core.ChangedError](err); errors.Is(err, core.ErrChanged) && who.Digest != "" && !said {
			err = d.changed(r.Context(), verb, id, who.Digest)
		}
		if err != nil {
			return nil, err
		}
		return d.records.Latest(r.Context(), id)
	}
}

// checkDecision refuses a denial without a reason, and an approval that isn't bound to content:
// by the digest of what the person saw, by a signature, or because the daemon shows it at the
// person's terminal. A person may also approve the current question unseen.
func checkDecision(verb string, word client.Decision) error {
	switch {
	case verb == "deny" && word.Note == "":
		return bad("a denial needs a reason: add --reason WHY")
	case word.Unseen && word.Digest != "":
		return bad("unseen: not together with digest")
	case verb == "approve" && word.Digest == "" && !word.Unseen && !word.Terminal && word.Proof == nil:
		return bad("digest: name the digest of what was shown, or set unseen to approve whatever is asked now")
	}
	return nil
}

// approver returns the peer as an approver; no approver for an agent.
func (d *Server) approver(p peer) core.Person {
	return core.Person{Names: d.opts.Approvers(p.uid), User: p.name(), Self: d.opts.Proofs().Self, UID: p.uid}
}

// markingOwn answers as read does, and says of the pending approvals what the caller may decide.
func (d *Server) markingOwn(read func(*http.Request) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		answer, err := read(r)
		if err != nil {
			return nil, err
		}
		switch found := answer.(type) {
		case client.TaskDetails:
			d.markOwn(r, found.Task, found.Approvals)
		case client.AskedTasks:
			for _, t := range found.Tasks {
				d.markOwn(r, t.Task, t.Approvals)
			}
		}
		return answer, nil
	}
}

// markOwn marks the pending approvals of a task that the caller requested with the rule for them.
func (d *Server) markOwn(r *http.Request, of client.Task, approvals []client.Approval) {
	who := d.approver(peerIn(r.Context()))
	if len(who.Names) == 0 || !who.Requested(task.Task{Requester: of.Requester}) {
		return
	}
	for i := range approvals {
		if a := &approvals[i]; a.Decision == "" {
			a.Own = who.Self.String()
		}
	}
}

// person returns the names of the peer as an approver: all names of one person. An agent has
// none, whatever name it gives, and its attempt is recorded.
func (d *Server) person(r *http.Request, verb string, id envelope.ID, as string) (core.Person, error) {
	p := peerIn(r.Context())
	who := d.approver(p)
	why := d.partOfRun(p)
	switch {
	case why != "":
	case as != "" && !slices.Contains(who.Names, as):
		why = p.name() + " is not " + as
	case as != "":
		who.As = as
	}
	if why == "" {
		return who, nil
	}
	ctx := context.WithoutCancel(r.Context()) // a closed connection doesn't prevent the record
	if err := d.engine.RefuseApproval(ctx, id, p.String(), why); err != nil {
		return core.Person{}, err
	}
	return core.Person{}, forbidden("%s may not %s: %s", p, verb, why)
}
