package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/core"
	"mailboxd/internal/proof"
	"mailboxd/internal/task"
)

// statement answers with what the caller has to sign to decide about a task.
func (d *Server) statement(r *http.Request) (any, error) {
	id, err := idIn(r)
	if err != nil {
		return nil, err
	}
	decision := task.Decision(r.FormValue("decision"))
	verb, known := map[task.Decision]string{task.Approved: "approve", task.Denied: "deny"}[decision]
	if !known {
		return nil, bad("decision: must be approved or denied")
	}
	who, err := d.person(r, verb, id, r.FormValue("as"))
	if err != nil {
		return nil, err
	}
	row, asked, needed, err := d.engine.Question(r.Context(), verb, id)
	if err != nil {
		return nil, err
	}
	approvers := d.opts.Proofs()
	asked.Decision, asked.Proof.Expires = decision, approvers.Expiry(time.Now())
	s := approvers.StatementOf(row, asked)
	answer := client.Statement{
		Mailbox: s.Mailbox, Task: s.Task, Revision: s.Revision, Stage: s.Stage, Decision: string(s.Decision),
		Digest: s.Digest, Asked: s.Asked, Expires: s.Expires, Approver: who.Name(asked.Approver),
	}
	if approver := approvers.Find(answer.Approver); approver != nil {
		needed = max(needed, approver.Min)
		for _, key := range approver.Keys {
			answer.Keys = append(answer.Keys, proof.Line(key))
		}
	}
	answer.Needs = max(needed, who.Needs(row)).String()
	return answer, nil
}

// proven adds to a person the proof of a decision: the signature that the caller sent, or the
// number that is typed at the caller's terminal.
func (d *Server) proven(ctx context.Context, who core.Person, verb string, id envelope.ID, word client.Decision) (core.Person, error) {
	switch {
	case word.Proof != nil:
		who.Proof = task.Proof{Kind: proof.KindSSH, Expires: word.Proof.Expires, Signature: word.Proof.Signature, Key: proof.FingerprintOf(word.Proof.Signature)}
	case word.Terminal:
		p := peerIn(ctx)
		terminal, err := confirmAtTerminal(ctx, p, fmt.Sprintf("mailboxd: %s asks to %s the task %s.", who, verb, id))
		if err != nil {
			why := "the decision was not confirmed at a terminal: " + err.Error()
			if err := d.engine.RefuseApproval(context.WithoutCancel(ctx), id, p.String(), why); err != nil {
				return who, err
			}
			return who, forbidden("%s may not %s: %s", p, verb, why)
		}
		who.Proof = task.Proof{Kind: proof.KindTerminal, Terminal: terminal}
	}
	return who, nil
}
