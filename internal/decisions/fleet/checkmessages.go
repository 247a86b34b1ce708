package fleet

import (
	"errors"
	"fmt"
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// Check returns what is wrong with a Report.
func (r Report) Check() error {
	err := errors.Join(Name(r.Runner), check("incarnation", r.Incarnation, maxName, "-"), check("session", r.Session, maxName, "-"))
	switch {
	case err != nil:
		return err
	case r.Journal < 0 || r.Number < 1:
		return fmt.Errorf("report: journal is %d and number is %d", r.Journal, r.Number)
	case len(r.Runs) > MaxRuns || len(r.Voided) > MaxRuns:
		return fmt.Errorf("report: more than %d tokens", MaxRuns)
	case len(r.DiskFull) > maxText:
		return fmt.Errorf("report: disk_full has %d bytes", len(r.DiskFull))
	}
	seen := make(map[Token]bool, len(r.Runs)+len(r.Voided))
	once := func(t Token) error {
		if seen[t] {
			return fmt.Errorf("report: token %s is listed twice", t)
		}
		seen[t] = true
		return t.Check()
	}
	for _, run := range r.Runs {
		if !slices.Contains([]RunState{Offered, Began, Ended}, run.State) || run.Cost.Tokens < 0 || run.Cost.USDCents < 0 || run.Since < 0 {
			return fmt.Errorf("report: run %.80q has state %.20q and cost %+v", string(run.Token), string(run.State), run.Cost)
		}
		if err := once(run.Token); err != nil {
			return err
		}
	}
	for _, token := range r.Voided {
		if err := once(token); err != nil {
			return err
		}
	}
	return nil
}

// Check returns what is wrong with a Hello.
func (h Hello) Check() error { return errors.Join(h.Report.Check(), h.Announcement.Check()) }

// Check returns what is wrong with an Announcement.
func (a Announcement) Check() error {
	if a.Slots < 0 || a.Slots > MaxRuns || len(a.Agents) > MaxRuns || len(a.Capabilities) > maxName || len(a.Version) > maxText {
		return fmt.Errorf("announcement: %d slots, %d agents, %d capabilities", a.Slots, len(a.Agents), len(a.Capabilities))
	}
	if len(a.Sandbox) > maxName {
		return fmt.Errorf("announcement: sandbox has %d bytes", len(a.Sandbox))
	}
	for _, capability := range a.Capabilities {
		if err := check("capability", capability, maxName, "-_.:"); err != nil {
			return err
		}
	}
	if err := checkCommits(a.Commits); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, agent := range a.Agents {
		_, known := envelope.ParseSensitivity(agent.MaxSensitivity)
		switch err := Digest(agent.Digest); {
		case err != nil:
			return fmt.Errorf("agent %.80q: %w", agent.ID, err)
		case agent.ID == "" || len(agent.ID) > 256 || seen[agent.ID]:
			return fmt.Errorf("agent %.80q: want a name that no other agent has", agent.ID)
		case agent.Concurrency < 0 || !known || len(agent.Sandbox) > maxName:
			return fmt.Errorf("agent %.80q: concurrency %d, max_sensitivity %.20q", agent.ID, agent.Concurrency, agent.MaxSensitivity)
		}
		seen[agent.ID] = true
	}
	return nil
}

// checkCommits returns what is wrong with the commits of an announcement.
func checkCommits(all map[string][]string) error {
	if len(all) > 64 {
		return fmt.Errorf("announcement: commits of %d repositories; at most 64 are accepted", len(all))
	}
	for repository, commits := range all {
		if len(repository) > 256 || len(commits) > 16 {
			return fmt.Errorf("announcement: repository %.80q has %d commits; at most 16 are accepted", repository, len(commits))
		}
		for _, commit := range commits {
			if err := check("commit", commit, 64, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// Check returns what is wrong with a Claim.
func (c Claim) Check() error {
	if err := errors.Join(c.Report.Check(), check("claim", c.ID, maxName, "-")); err != nil {
		return err
	}
	if c.Free < 0 || c.Free > MaxRuns || len(c.By) > MaxRuns {
		return fmt.Errorf("claim: %d free", c.Free)
	}
	for agent, free := range c.By {
		if free < 0 || free > MaxRuns || len(agent) > 256 {
			return fmt.Errorf("claim: %d free of agent %.80q", free, agent)
		}
	}
	return nil
}

// Check returns what is wrong with a Done.
func (d Done) Check() error {
	if err := errors.Join(d.Report.Check(), d.Token.Check(), oneOf("outcome", d.Outcome, d.Object, ObjectOutcome)); err != nil {
		return err
	}
	return checkObjects(d.Objects, ObjectPatch, ObjectLog, ObjectEvidence, ObjectArtifact)
}

// oneOf returns an error unless a value is either in a message or in an object of a kind.
func oneOf(what string, inline []byte, object *Object, kind ObjectKind) error {
	switch {
	case (len(inline) == 0) == (object == nil):
		return fmt.Errorf("%s: want it in the message or in an object", what)
	case object == nil:
		return nil
	case object.Kind != kind:
		return fmt.Errorf("%s: object has kind %q", what, object.Kind)
	}
	return object.Check()
}

// checkObjects returns what is wrong with a list of objects of some kinds.
func checkObjects(objects []Object, kinds ...ObjectKind) error {
	if len(objects) > MaxObjects {
		return fmt.Errorf("objects: %d; at most %d are accepted", len(objects), MaxObjects)
	}
	seen := map[string]bool{}
	for _, o := range objects {
		if err := o.Check(); err != nil {
			return err
		}
		name := string(o.Kind) + "/" + o.Name
		key := "key " + o.Key // each is got once, so that all of them aren't larger than their bucket
		if !slices.Contains(kinds, o.Kind) || seen[name] || seen[key] {
			return fmt.Errorf("objects: %.80q isn't expected, or it or its key is there twice", name)
		}
		seen[name], seen[key] = true, true
	}
	return nil
}

// Check returns what is wrong with a Note.
func (n Note) Check() error {
	if err := errors.Join(Name(n.Runner), check("incarnation", n.Incarnation, maxName, "-"), n.Token.Check()); err != nil {
		return err
	}
	said := 0
	for _, is := range []bool{n.Report != nil, n.Cost != nil, n.Used != nil, n.Ask != nil} {
		if is {
			said++
		}
	}
	if n.Number < 1 || said != 1 {
		return fmt.Errorf("note: number %d says %d things; want one", n.Number, said)
	}
	if n.Used != nil && !slices.Contains([]task.Kind{task.KindToolCalled, task.KindToolRefused, task.KindToolChanged}, n.Used.Kind) {
		return fmt.Errorf("note: %.80q is no use of a tool", string(n.Used.Kind))
	}
	if n.Cost != nil && (n.Cost.Tokens < 0 || n.Cost.USDCents < 0) {
		return fmt.Errorf("note: cost %+v", *n.Cost)
	}
	return nil
}

// Check returns what is wrong with a Reply.
func (r Reply) Check() error {
	if r.Epoch < 1 || r.Lease < 0 || len(r.Jobs) > MaxJobs {
		return fmt.Errorf("reply: epoch %d, lease %s, %d jobs", r.Epoch, r.Lease, len(r.Jobs))
	}
	for _, j := range r.Jobs {
		if err := errors.Join(j.Token.Check(), Digest(j.Digest), oneOf("work", j.Work, j.Object, ObjectWork)); err != nil {
			return err
		}
	}
	for _, t := range slices.Concat(r.Renew, r.Cancel, r.Void, r.Settled) {
		if err := t.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Check returns what is wrong with a DoneReply.
func (d DoneReply) Check() error { return d.Token.Check() }

// Check returns what is wrong with a NoteReply.
func (n NoteReply) Check() error { return n.Token.Check() }

// Check returns what is wrong with an Order.
func (o Order) Check() error {
	for _, t := range []Token{o.Cancel, o.Follow} {
		if err := t.Check(); t != "" && err != nil {
			return err
		}
	}
	return nil
}

// Check returns what is wrong with a LogLine.
func (l LogLine) Check() error {
	if l.Offset < 0 {
		return fmt.Errorf("log line: offset %d", l.Offset)
	}
	return nil
}

// Check returns what is wrong with an Outcome. What a result says about its own run is the runner's to say.
func (o Outcome) Check() error {
	statuses := []envelope.Status{"", envelope.OK, envelope.Failed, envelope.Partial, envelope.Stopped, envelope.Rejected}
	if !slices.Contains(statuses, o.Result.Status) || !slices.Contains(statuses, o.Unanswered.Status) || o.Hold != "" && !o.Hold.AfterRun() {
		return fmt.Errorf("outcome: status %.40q, hold %.40q", string(o.Result.Status), string(o.Hold))
	}
	if cost := o.Result.Cost; cost != nil && (cost.Tokens < 0 || cost.USDCents < 0) {
		return fmt.Errorf("outcome: cost %+v", *cost)
	}
	if len(o.Left) > MaxLeft || slices.ContainsFunc(o.Left, func(l Left) bool { return len(l.What) > maxText || len(l.Path) > maxText }) {
		return fmt.Errorf("outcome: %d things that stay, or one with a long text", len(o.Left))
	}
	return nil
}

// Check returns what is wrong with a Work.
func (w Work) Check() error {
	if w.Worktree != nil {
		for _, o := range []*Object{w.Worktree.Bundle, w.Worktree.Patch} {
			if o == nil {
				continue
			}
			if err := o.Check(); err != nil {
				return err
			}
		}
	}
	return checkObjects(w.Inputs, ObjectInput)
}
