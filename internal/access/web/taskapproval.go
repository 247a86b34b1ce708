package web

import (
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/view"
)

// addApprovals adds what people were asked, and the plan that they are asked to agree to.
func (d *taskData) addApprovals() {
	for _, a := range d.TaskDetails.Approvals {
		d.Approvals = append(d.Approvals, view.ApprovalWords(a))
	}
	pending := d.PendingApproval()
	if !pending.Asked.IsZero() {
		d.Asked = &pending
	}
	if n := len(d.TaskDetails.Approvals); n > 0 {
		d.Question = planOf(d.TaskDetails.Approvals[n-1])
		if d.Asked != nil {
			d.Question = planOf(*d.Asked)
		}
		if d.Row.Patch != "" {
			d.Question = append(d.Question, fact{Name: "Patch", Value: "sha256 " + d.Row.Patch})
		}
	}
}

// planOf is what an approval is about, in lines.
func planOf(a client.Approval) (all []fact) {
	if p := a.Plan; p != nil {
		if words := view.ServiceWords(*p); words != "" {
			all = append(all, fact{Name: "Service", Value: words})
		}
		switch {
		case p.Inbox != "":
			all = append(all, fact{Name: "Inbox", Value: p.Inbox})
		case p.Remote:
			all = append(all, fact{Name: "Runs", Value: view.RunnerWords(*p)})
		case p.Service == nil || len(p.Command) > 0:
			all = append(all, fact{Name: "Command", Value: view.CommandLine(p.Command)})
			for _, f := range view.Programs(*p) {
				all = append(all, fact{Name: map[string]string{"file": "Program", "script": "Script"}[f.Name], Value: f.Path + f.Words})
			}
			all = append(all, fact{Name: "In", Value: view.PlaceOf(*p)})
			if words := view.SetupWords(*p); words != "" {
				all = append(all, fact{Name: "Setup", Value: words})
			}
			if words := view.SandboxWords(*p); words != "" {
				all = append(all, fact{Name: "Sandbox", Value: words})
			}
		}
		if p.Permission != "" {
			all = append(all, fact{Name: "May", Value: p.Permission})
		}
		all = append(all, fact{Name: "Tools", Value: view.ToolWords(*p)}, fact{Name: "Budget", Value: view.LimitWords(p.Budget)})
		for _, words := range view.CallRuleWords(p.Calls) {
			all = append(all, fact{Name: "Calls", Value: words})
		}
		if names := view.VariableNames(*p); names != "" {
			all = append(all, fact{Name: "Variables", Value: names})
		}
		if p.Manifest != "" {
			all = append(all, fact{Name: "Manifest", Value: view.ContentWords(p.Manifest)})
		}
	}
	if a.Call != nil {
		for _, f := range view.CallFacts(*a.Call) {
			all = append(all, fact{Name: f.Name, Value: f.Value})
		}
	}
	return append(all, fact{Name: "Digest", Value: a.Digest})
}
