package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
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
	row, asked, needed, err := d.engine.Question(r.Context(), verb, id, r.FormValue("seen"))
	if err != nil {
		return nil, err
	}
	if seen := r.FormValue("seen"); seen != "" && seen != asked.Digest {
		return nil, d.changed(r.Context(), verb, id, seen)
	}
	approvers := d.opts.Proofs()
	asked.Decision, asked.Proof.Expires = decision, approvers.Expiry(time.Now())
	return toSign(approvers, who.Name(asked.Approver), row, asked, max(needed, who.Needs(row))), nil
}

// toSign is the statement of a decision for the one who makes it, with the keys that can sign it and the proof that it
// needs.
func toSign(approvers proof.Approvers, name string, row task.Task, c task.Consent, needed task.ProofLevel) client.Statement {
	s := approvers.StatementOf(row, c)
	answer := client.Statement{
		Mailbox: s.Mailbox, Task: s.Task, Revision: s.Revision, Stage: s.Stage, Decision: string(s.Decision),
		Digest: s.Digest, Asked: s.Asked, Expires: s.Expires, Approver: name,
	}
	if approver := approvers.Find(name); approver != nil {
		needed = max(needed, approver.Min)
		for _, key := range approver.Keys {
			answer.Keys = append(answer.Keys, proof.Line(key))
		}
		for _, key := range approver.Passkeys {
			answer.Passkeys = append(answer.Passkeys, key.String())
		}
	}
	answer.Needs = needed.String()
	return answer
}

// signatureOf is a signature that the caller sent, as a proof.
func signatureOf(s client.Signature) (task.Proof, error) {
	kind := cmp.Or(s.Kind, proof.KindSSH)
	if kind != proof.KindSSH && kind != proof.KindPasskey {
		return task.Proof{}, bad("proof.kind: must be ssh or passkey")
	}
	return task.Proof{Kind: kind, Expires: s.Expires, Signature: s.Signature, Key: proof.FingerprintOf(kind, s.Signature)}, nil
}

// addSignature adds a signature to a decision that is no approval: it is valid for minutes.
func addSignature(c *task.Consent, s client.Signature) (err error) {
	if c.Proof, err = signatureOf(s); err != nil {
		return err
	}
	if time.Until(s.Expires) > signedTime+time.Minute {
		return bad("proof.expires_at: a signature of this decision is valid for %s", signedTime)
	}
	return nil
}

// proven adds to a person the proof of a decision: the number that is typed at the caller's
// terminal, or the signature that the caller sent. With both, the signature is the proof, and
// counts once the number was typed.
func (d *Server) proven(ctx context.Context, who core.Person, verb string, id envelope.ID, word client.Decision) (core.Person, error) {
	who.Digest = word.Digest
	if word.Digest != "" {
		if _, asked, _, err := d.engine.Question(ctx, verb, id, word.Digest); err != nil {
			return who, err
		} else if asked.Digest != word.Digest {
			return who, d.changed(ctx, verb, id, word.Digest)
		}
	}
	if word.Patch != "" {
		details, err := d.records.Details(ctx, id)
		if err != nil {
			return who, err
		}
		if is := details.PatchShown(); is != word.Patch {
			return who, &client.Error{Kind: client.Conflict, Message: fmt.Sprintf(
				"%s %s: the patch is another one than was shown: it was sha256 %.64q, and is sha256 %q; look at it again: %s",
				verb, id, word.Patch, is, view.Command("diff", id))}
		}
	}
	if word.Terminal {
		var err error
		if who, err = d.confirmed(ctx, who, verb, id, word); err != nil {
			return who, err
		}
	}
	if word.Proof != nil {
		var err error
		if who.Proof, err = signatureOf(*word.Proof); err != nil {
			return who, err
		}
	}
	return who, nil
}

// confirmed has a person type a number at the caller's terminal. The decision is about the
// question that was asked then.
func (d *Server) confirmed(ctx context.Context, who core.Person, verb string, id envelope.ID, word client.Decision) (core.Person, error) {
	_, asked, _, err := d.engine.Question(ctx, verb, id, who.Digest)
	if err != nil {
		return who, err
	}
	if who.Digest != "" && who.Digest != asked.Digest {
		return who, d.changed(ctx, verb, id, who.Digest)
	}
	who.Digest = asked.Digest
	p, question := peerIn(ctx), fmt.Sprintf("mailboxd: %s asks to %s the task %s.", who, verb, id)
	if word.Number != "" || !word.Unseen {
		details, err := d.records.Details(ctx, id)
		if err != nil {
			return who, err
		}
		text, shown := (&view.Details{TaskDetails: details, Chosen: asked.Digest}).AskedContent()
		if shown.Digest != asked.Digest {
			return who, d.changed(ctx, verb, id, asked.Digest)
		}
		question += "\n" + text
	}
	question += view.NoteContent(word.Note, word.Again)
	terminal, err := confirmAtTerminal(ctx, p, question, word.Number)
	if err == nil {
		who.Proof = task.Proof{Kind: proof.KindTerminal, Terminal: terminal}
		return who, nil
	}
	why := "the decision was not confirmed at a terminal: " + err.Error()
	if err := d.engine.RefuseApproval(context.WithoutCancel(ctx), id, p.String(), why); err != nil {
		return who, err
	}
	return who, forbidden("%s may not %s: %s", p, verb, why)
}
