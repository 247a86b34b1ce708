package daemon

import (
	"context"
	"fmt"

	"mailboxd/envelope"
	"mailboxd/internal/running/agent"
)

// earlier looks up the latest revision of a task, whose session another one continues.
func (r *resources) earlier(id envelope.ID) (e agent.Earlier, err error) {
	ctx := context.Background()
	rows, err := r.ledger.Revisions(ctx, id)
	if err != nil || len(rows) == 0 {
		return e, err
	}
	row := rows[len(rows)-1]
	e.State, e.Agent = row.State, row.Agent
	runs, err := r.ledger.Runs(ctx, row.Seq)
	if err != nil {
		return e, fmt.Errorf("look up %s: %w", id, err)
	}
	if n := len(runs); n > 0 {
		e.Run, e.Dir = runs[n-1].ID, r.state.RunDir(row.ID, row.Revision, runs[n-1].Attempt)
	}
	asked, err := r.ledger.Approvals(ctx, row.Seq)
	if err != nil {
		return e, fmt.Errorf("look up %s: %w", id, err)
	}
	for _, a := range asked {
		if a.DeniesTask() {
			e.Denier = a.Decider
		}
	}
	raw, err := r.ledger.Raw(ctx, row.Seq)
	if err == nil && row.Dialect == envelope.AINL {
		if t, findings := envelope.DecodeTask(raw, envelope.Legacy); !findings.Refused() {
			e.Request = t
		}
	}
	return e, nil // without its request it can't be continued
}
