package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/route"
	"mailboxd/internal/decisions/task"
)

// A Chooser chooses the agents of tasks that name none.
type Chooser struct {
	*Reader
	UsedUp map[string]string // why an agent's budget of the day had nothing left for an earlier task of a pass; nil: not kept
}

// candidates returns the agents for a task, narrowed to what they announced.
func (ch Chooser) candidates(t envelope.Task) (Candidates, bool) {
	all, ok := ch.Agents.Candidates(t)
	for i := range all.All {
		c := &all.All[i]
		ch.Pauses.Presence.narrow(c, ch.Agents.Inbox(c.ID).File == "")
	}
	return all, ok
}

// judgeUnbound judges a task whose agent is not chosen yet. A task that no agent can do is
// refused at once; any other task is held until an agent is chosen for it.
func (ch Chooser) judgeUnbound(t envelope.Task, findings envelope.Findings, now time.Time) task.Verdict {
	all, ok := ch.candidates(t)
	if !ok {
		return ch.judgeFor(t, findings, now)
	}
	if core.IsPast(t.Deadline, now) {
		return refuse(findings, envelope.DeadlineExceeded, "deadline", t.Deadline.UTC().Format(time.RFC3339)+" is past")
	}
	if near := ch.NearMisses(t); near.Refused() { // for each agent
		return task.Verdict{Findings: append(slices.Clip(findings), near...)}
	}
	ch.judgeEach(t, all.All, now)
	r := route.Recorded(all.Need, all.All, now, all.Rules)
	if !r.Capable {
		return NoCapableAgent(findings, r, "no agent here can do it: "+r.Reason)
	}
	v := task.Verdict{Admit: true, Findings: findings, Terms: task.Terms{Deadline: t.Deadline}}
	return core.Held(v, task.Routing)
}

// NoCapableAgent returns the refusal of a task that no agent does, with the decision.
func NoCapableAgent(findings envelope.Findings, r route.Record, why string) task.Verdict {
	v := refuse(findings, envelope.NoCapableAgent, "target_agent", why)
	if text, err := r.JSON(); err == nil { // it consists of strings, numbers and times
		v.Routing = text
	}
	return v
}

func refuse(findings envelope.Findings, kind envelope.Kind, field, why string) task.Verdict {
	return task.Verdict{Findings: append(slices.Clip(findings), envelope.Finding{Kind: kind, Field: field, Message: why})}
}

// judgeEach sets what policy says about the task for each candidate, and what holds the
// candidate. It returns the daily budgets that the task would be charged to, by agent.
func (ch Chooser) judgeEach(t envelope.Task, all []route.Candidate, now time.Time) map[string][]task.Account {
	accounts := map[string][]task.Account{}
	for i := range all {
		c := &all[i]
		if c.Disabled != "" {
			continue
		}
		t.Agent = c.ID
		v := ch.judgeFor(t, nil, now)
		c.Tools = v.Tools
		if !v.Admit {
			c.Refused = v.Findings.Refusals()[:1].String()
			continue
		}
		accounts[c.ID] = v.Accounts
		for _, reason := range v.Hold {
			switch reason {
			case task.Approval:
			case task.Paused:
				c.Paused = true
			default:
				c.Waits, c.Until = reason.Facts().Clause(), v.Until
			}
		}
		if why := ch.mayAsk(t.Requester, c.ID); why != "" {
			c.Delegation = why
		}
	}
	return accounts
}

// mayAsk says why a requester that is an agent may not delegate to another one, or "".
func (ch Chooser) mayAsk(requester, agent string) string {
	if !ch.Agents.Known(requester) {
		return ""
	}
	return ch.Agents.Protocol.MayDelegate(requester, agent)
}

// judgeFit refuses a task that names an agent which a static filter excludes (CLUTCH-47).
func (ch Chooser) judgeFit(t envelope.Task, v task.Verdict) task.Verdict {
	if t.Routed || !t.Clutch.NeedsFit() || !v.Admit || ch.Agents.Candidates == nil {
		return v
	}
	all, ok := ch.candidates(t)
	if !ok {
		return v
	}
	at := slices.IndexFunc(all.All, func(c route.Candidate) bool { return c.ID == t.Agent })
	if at < 0 {
		return v
	}
	c := all.All[at]
	c.Tools, all.Need.Agent = v.Tools, t.Agent
	d := route.Decide(all.Need, []route.Candidate{c}, time.Time{})
	if d.Selected != "" {
		return v
	}
	e := d.Excluded[0]
	return refuse(v.Findings.Warnings(), envelope.NoCapableAgent, "to", fmt.Sprintf("agent %q is excluded by the filter %s: %s", t.Agent, e.Filter, e.Why))
}

// Decide returns the decision about a task as things are now. It reports false if the
// configuration forbids to choose.
func (ch Chooser) Decide(ctx context.Context, row task.Task, t envelope.Task, load func(agent string) int, now time.Time) (r route.Record, timeout time.Duration, ok bool, err error) {
	all, ok := ch.candidates(t)
	if !ok {
		return r, 0, false, nil
	}
	if t.Agent != envelope.Everybody {
		all.Need.Agent = t.Agent
	}
	accounts := ch.judgeEach(t, all.All, now)
	if err := ch.gather(ctx, row, all.All, accounts, load, now); err != nil {
		return r, 0, true, err
	}
	if all.Need.Exclude, err = ch.failedBefore(ctx, row); err != nil {
		return r, 0, true, err
	}
	return route.Recorded(all.Need, all.All, now, all.Rules), all.Timeout, true, nil
}

// Choose decides which agent gets an unbound task. It returns the request for that agent, and
// the verdict on it; the decision selects nobody if no agent is free.
func (ch Chooser) Choose(ctx context.Context, row task.Task, t envelope.Task, findings envelope.Findings, load func(agent string) int) (r route.Record, request envelope.Task, v task.Verdict, err error) {
	now := time.Now()
	r, timeout, ok, err := ch.Decide(ctx, row, t, load, now)
	if err != nil {
		return r, t, v, err
	}
	if !ok {
		return r, t, ch.judgeFor(t, findings, now), nil
	}
	expiry, err := ch.expiry(ctx, row, t, timeout, now)
	switch {
	case err != nil:
		return r, t, v, err
	case r.Selected != "":
		t.Agent, row.Agent = r.Selected, r.Selected
		v, err = ch.JudgeLineage(ctx, row, ch.judgeFor(t, findings, now))
	case !r.Capable:
		v = NoCapableAgent(findings, r, "no agent here can do it: "+r.Reason)
	case !now.Before(expiry):
		v = NoCapableAgent(findings, r, fmt.Sprintf("no capable agent was free by %s: %s", expiry.UTC().Format(time.RFC3339), r.Reason))
	default:
		v = core.Held(task.Verdict{Admit: true, Findings: findings, Terms: task.Terms{Deadline: t.Deadline}}, task.Routing)
		v.Until = core.Earliest(expiry, r.Until)
		if slices.ContainsFunc(r.Excluded, func(e route.Exclusion) bool { return e.Filter == "budget" }) {
			v.Until = core.Earliest(v.Until, core.Midnight(now)) // the budgets of the day start again
		}
	}
	v.Until = v.Until.Truncate(time.Microsecond) // as the ledger keeps it
	return r, t, v, err
}

// expiry returns when a task is refused that still waits for its agent. The time before it began to
// wait, such as for the end of another task, does not count.
func (ch Chooser) expiry(ctx context.Context, row task.Task, t envelope.Task, timeout time.Duration, now time.Time) (time.Time, error) {
	since := row.Received
	if now.Sub(since) < timeout {
		return core.Earliest(since.Add(timeout), t.Deadline), nil // no earlier than this
	}
	held, found, err := ch.Ledger.HeldSince(ctx, row.Seq)
	if found {
		since = held
	}
	return core.Earliest(since.Add(timeout), t.Deadline), err
}

// Present returns all agents with the facts that change with time.
func (ch Chooser) Present(ctx context.Context, load func(agent string) int) ([]route.Candidate, error) {
	all, _ := ch.candidates(envelope.Task{Clutch: &envelope.ClutchPart{}})
	return all.All, ch.gather(ctx, task.Task{}, all.All, nil, load, time.Now())
}

// gather sets the facts about candidates that change with time.
func (ch Chooser) gather(ctx context.Context, row task.Task, all []route.Candidate, accounts map[string][]task.Account, load func(string) int, now time.Time) error {
	if err := ch.readPerformance(ctx); err != nil {
		return err
	}
	for i := range all {
		c := &all[i]
		withoutLogin, err := ch.Ledger.CountHeld(ctx, c.ID, task.Held, task.AuthRequired)
		if err != nil {
			return err
		}
		c.Login, c.Running = withoutLogin > 0, load(c.ID)
		ch.RecentRuns.Performance.describe(c)
		if c.Budget, err = ch.spent(ctx, c.ID, accounts[c.ID], now); err != nil {
			return err
		}
		if row.Parent == 0 || c.Disabled != "" {
			continue
		}
		bound := row
		bound.Agent = c.ID
		v, err := ch.JudgeLineage(ctx, bound, task.Verdict{Admit: true})
		if err != nil {
			return err
		}
		if !v.Admit {
			c.Lineage = v.Findings.Refusals().String()
		}
	}
	return nil
}

// spent says that an agent's budget of the day is used up, or "". What becomes free during a pass of the router
// counts in the next one, or a task would get it before those ahead of it.
func (ch Chooser) spent(ctx context.Context, agent string, accounts []task.Account, now time.Time) (string, error) {
	at := slices.IndexFunc(accounts, func(a task.Account) bool { return a.Owner == "agent:"+agent })
	if at < 0 {
		return "", nil
	}
	if why := ch.UsedUp[agent]; why != "" {
		return why, nil
	}
	b, err := ch.Ledger.Balance(ctx, accounts[at].Owner, task.Day(now))
	if err != nil {
		return "", err
	}
	why := core.UsedUp(accounts[at].Limit, b)
	if ch.UsedUp != nil {
		ch.UsedUp[agent] = why
	}
	return why, nil
}

// failedBefore returns the agents that failed at the task which a task replaces: the operator
// has it reassigned to the agent that routing chooses.
func (ch Chooser) failedBefore(ctx context.Context, row task.Task) (failed []string, err error) {
	for row.Parent != 0 {
		conv, _, err := ch.Ledger.Conversation(ctx, row.Seq)
		if err != nil || conv.Tie != envelope.Transfer {
			return failed, err
		}
		if row, err = ch.Ledger.Task(ctx, row.Parent); err != nil {
			return failed, err
		}
		failed = append(failed, row.Agent)
	}
	return failed, nil
}

// whyUnbind says why the chosen agent of a task loses it, or "": the agent can't start the task
// any more. A task that waits for an approval, or has one, stays with its agent as long as this
// can take it at all.
func (ch Chooser) whyUnbind(row task.Task, t envelope.Task, v task.Verdict) string {
	if ch.Agents.Candidates == nil || row.Agent == envelope.Everybody || row.Attempt > 0 || !t.Routed || len(core.Lasting(row.Reasons)) > 0 {
		return ""
	}
	switch v.Findings.Kind() {
	case envelope.DeadlineExceeded, envelope.ChangeWindowMissed, envelope.ApprovalDenied, envelope.ApprovalExpired, envelope.DependencyFailed:
		return ""
	}
	if !v.Admit {
		return v.Findings.Refusals().String()
	}
	if core.WantsApproval(v.Hold) || core.WantsApproval(row.Reasons) {
		return ""
	}
	for _, reason := range v.Hold {
		if reason == task.Paused || reason == task.ProviderLimit || reason == task.ChangeWindow {
			return reason.Facts().Clause()
		}
	}
	return ""
}
