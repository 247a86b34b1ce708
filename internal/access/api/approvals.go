package api

import (
	"cmp"
	"context"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// asked returns the questions to people about a task: about its latest revision, or about the
// revision in review that it waits for. It also returns the answer that is withheld from the
// requester, if there is one.
func (b *Records) asked(ctx context.Context, revisions []task.Task) (list []client.Approval, unshown jsontext.Value, err error) {
	row := revisions[len(revisions)-1]
	for _, r := range revisions {
		if r.State == task.Review {
			row = r
		}
	}
	consents, err := b.Ledger.Approvals(ctx, row.Seq)
	if err != nil || len(consents) == 0 {
		return nil, nil, err
	}
	for _, c := range consents {
		a := approvalOf(row.Revision, c)
		if a.Proof, err = b.proofOf(row, c); err != nil {
			return nil, nil, err
		}
		if row.Seq != revisions[len(revisions)-1].Seq {
			if a.Request, err = b.requestText(ctx, row.Seq); err != nil {
				return nil, nil, err
			}
		}
		list = append(list, a)
	}
	read := b.Ledger.Withheld
	if row.State == task.Review {
		read = b.Ledger.Result
	}
	answer, err := read(ctx, row.Seq)
	if errors.Is(err, ledger.ErrUnknown) {
		return list, nil, nil
	}
	return list, answer, err
}

// Asked returns tasks with their descriptions, and what people were asked about each. It leaves out unknown ones.
func (b *Records) Asked(ctx context.Context, ids []envelope.ID) ([]client.AskedTask, error) {
	var rows []task.Task
	var approvals [][]client.Approval
	for _, id := range ids {
		revisions, err := b.Ledger.Revisions(ctx, id)
		if err != nil {
			return nil, err
		}
		if len(revisions) == 0 {
			continue
		}
		asked, _, err := b.asked(ctx, revisions)
		if err != nil {
			return nil, err
		}
		rows, approvals = append(rows, revisions[len(revisions)-1]), append(approvals, asked)
	}
	tasks, err := b.requested(ctx, rows)
	if err = cmp.Or(err, b.addShortIDs(ctx, tasks)); err != nil {
		return nil, err
	}
	all := make([]client.AskedTask, len(tasks))
	for i, t := range tasks {
		all[i] = client.AskedTask{Task: t, Approvals: approvals[i]}
	}
	return all, nil
}

func approvalOf(revision int, c task.Consent) client.Approval {
	a := client.Approval{
		Revision: revision, Stage: c.Stage, Digest: c.Digest, Approver: c.Approver, Asked: c.Asked, Expires: c.Expires,
		Decision: string(c.Decision), Decided: c.Decided, Decider: c.Decider, Note: c.Note,
	}
	if c.Stage == envelope.ApprovalTool {
		var content struct {
			Call *task.Call `json:"call"`
		}
		if json.Unmarshal(c.Plan, &content) == nil {
			a.Call = content.Call
		}
		return a
	}
	var plan client.Plan
	if c.Plan != nil && json.Unmarshal(c.Plan, &plan) == nil { // one of another version may say something else
		a.Plan = &plan
	}
	return a
}

// proofOf returns the proof of a decision with the text that was signed; nil for none.
func (b *Records) proofOf(row task.Task, c task.Consent) (*client.Proof, error) {
	p := c.Proof
	if p.Kind == "" {
		return nil, nil
	}
	shown := &client.Proof{Kind: p.Kind, Terminal: p.Terminal, Key: p.Key, Expires: p.Expires, Signature: p.Signature}
	if p.Signature != "" {
		mailbox, err := b.State.ID()
		if err != nil {
			return nil, err
		}
		if c.Decision != task.Approved && c.Decision != task.Denied { // it has ended since
			c.Decision = task.Approved
		}
		shown.Signed = string(proof.Approvers{Mailbox: mailbox}.StatementOf(row, c).Encode())
	}
	return shown, nil
}
