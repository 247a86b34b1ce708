package conversation_test

import (
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

// asked is a task that was requested in CLowl.
var asked = conversation.Request{
	ID: "m1", Type: "search", Requester: "asker", Agent: "worker", Dialect: envelope.CLowl,
	Message: "m1", Thread: "c1", Trace: "x1",
}

func ended(status envelope.Status, kind envelope.Kind, message string) func(conversation.Request) conversation.Request {
	return func(t conversation.Request) conversation.Request {
		t.Result = &envelope.Result{TaskID: t.ID, Status: status, Error: envelope.Error{Kind: kind, Message: message}, Output: envelope.Output{Summary: "found it"}}
		return t
	}
}

func said(e ...string) (events []task.Event) {
	for i := 0; i < len(e); i += 2 {
		events = append(events, task.Event{Kind: task.Kind(e[i]), Data: jsontext.Value(e[i+1])})
	}
	return events
}

func TestWhatFollowsFromWhichEvent(t *testing.T) {
	as := func(d envelope.Dialect, tie envelope.Tie, more ...func(conversation.Request) conversation.Request) conversation.Request {
		about := asked
		about.Dialect, about.Tie = d, tie
		for _, change := range more {
			about = change(about)
		}
		return about
	}
	byCancel := func(t conversation.Request) conversation.Request { t.Cancels = []string{"cn1"}; return t }
	well := ended(envelope.OK, "", "")
	for name, c := range map[string]struct {
		about  conversation.Request
		events []task.Event
		want   []string // the act, and its data or the kind of its failure
	}{
		"a request that is taken is acknowledged":   {asked, said("task.accepted", `{}`), []string{"task.accepted {}"}},
		"and first of all":                          {asked, said("task.accepted", `{"held":["approval","change_window"]}`), []string{"task.accepted {}", `task.waiting {"blocked":["approval","change_window"],"note":"waits for approval and change window"}`}},
		"one that is refused at once is not":        {as(envelope.CLowl, "", ended(envelope.Rejected, envelope.UnknownAgent, "nobody")), said("task.accepted", `{}`, "task.rejected", `{}`), []string{"task.failed unknown_agent"}},
		"nor is one that no agent can do":           {as(envelope.CLowl, "", ended(envelope.Rejected, envelope.NoCapableAgent, "nobody")), said("task.accepted", `{}`, "routing.failed", `{"reason":"r"}`, "task.rejected", `{}`), []string{"task.failed no_capable_agent"}},
		"unless it waited for one":                  {as(envelope.CLowl, ""), said("task.accepted", `{"held":["routing"]}`, "routing.failed", `{"reason":"r"}`), []string{"task.accepted {}", `task.waiting {"blocked":["routing"],"note":"waits for routing"}`}},
		"one that is refused later was":             {as(envelope.CLowl, "", ended(envelope.Rejected, envelope.ApprovalDenied, "no")), said("task.accepted", `{}`, "task.held", `{"reasons":["approval"]}`, "approval.denied", `{}`, "task.rejected", `{}`), []string{"task.accepted {}", `task.waiting {"blocked":["approval"],"note":"waits for approval"}`, "task.failed approval_denied"}},
		"a wait for an inbox is notified":           {asked, said("task.waiting", `{}`), []string{`task.waiting {"blocked":["inbox"],"note":"waits for inbox"}`}},
		"an answer that a person looks at waits":    {asked, said("approval.asked", `{"stage":"post"}`), []string{`task.waiting {"blocked":["approval"],"note":"waits for approval"}`}},
		"an approval before is told by the hold":    {asked, said("approval.asked", `{"stage":"pre"}`), nil},
		"an overseer's look is waited for":          {asked, said("oversight.asked", `{}`), []string{`task.waiting {"blocked":["oversight"],"note":"waits for oversight"}`}},
		"and once more after a reply to them":       {asked, said("oversight.answered", `{}`), []string{`task.waiting {"blocked":["oversight"],"note":"waits for oversight"}`}},
		"what is sent back goes on":                 {asked, said("oversight.inquired", `{"by":"qa"}`), []string{`task.progress {"blocked":[],"note":"goes on"}`}},
		"what goes on does so aloud":                {asked, said("task.queued", `{}`), []string{`task.progress {"blocked":[],"note":"goes on"}`}},
		"a hold that is left to others is told":     {asked, said("task.released", `{"reasons":["children"]}`), []string{`task.waiting {"blocked":["children"],"note":"waits for children"}`}},
		"also after a reply":                        {asked, said("task.resumed", `{"from":"user"}`), []string{`task.progress {"blocked":[],"note":"goes on"}`}},
		"progress is told as it was said":           {asked, said("task.progress", `{"pct":40.5,"note":"reading"}`), []string{`task.progress {"note":"reading","pct":40.5}`}},
		"a retry is acknowledged again":             {asked, said("task.resubmitted", `{}`), []string{"task.accepted {}"}},
		"and says what it waits for":                {asked, said("task.resubmitted", `{"held":["approval"]}`), []string{"task.accepted {}", `task.waiting {"blocked":["approval"],"note":"waits for approval"}`}},
		"also if no agent can do it after a wait":   {as(envelope.CLowl, "", ended(envelope.Rejected, envelope.NoCapableAgent, "nobody")), said("task.resubmitted", `{"held":["routing"]}`, "routing.failed", `{"reason":"r"}`, "task.rejected", `{}`), []string{"task.accepted {}", `task.waiting {"blocked":["routing"],"note":"waits for routing"}`, "task.failed no_capable_agent"}},
		"a retry is never refused as it comes":      {as(envelope.CLowl, "", ended(envelope.Rejected, envelope.UnknownAgent, "nobody")), said("task.resubmitted", `{}`, "task.rejected", `{}`), []string{"task.accepted {}", "task.failed unknown_agent"}},
		"internal events are not notified":          {asked, said("task.started", `{"attempt":1}`, "task.claimed", `{}`, "budget.exceeded", `{}`), nil},
		"data that is none says its kind":           {asked, said("task.held", `[]`), []string{`task.waiting {"blocked":[],"note":"waits"}`}},
		"the end is the last":                       {as(envelope.CLowl, "", well), said("task.queued", `{}`, "task.finished", `{}`), []string{`task.progress {"blocked":[],"note":"goes on"}`, "task.completed"}},
		"a part of an answer is one":                {as(envelope.CLowl, "", ended(envelope.Partial, "", "")), nil, []string{"task.completed"}},
		"a failure says its kind":                   {as(envelope.CLowl, "", ended(envelope.Failed, envelope.Timeout, "too slow")), nil, []string{"task.failed timeout"}},
		"a status of the agent's own is its error":  {as(envelope.CLowl, "", ended("odd", "", "")), nil, []string{"task.failed agent_error"}},
		"a cancelling requester gets the stop":      {as(envelope.CLowl, "", ended(envelope.Stopped, envelope.Cancelled, "by asker"), byCancel), nil, []string{`task.cancelled {"status":"cancelled"}`}},
		"another requester gets a failure":          {as(envelope.CLowl, "", ended(envelope.Stopped, envelope.Cancelled, "by somebody")), nil, []string{"task.failed cancelled"}},
		"who cancelled in CAP too":                  {as(envelope.CAP, "", ended(envelope.Stopped, envelope.Cancelled, "by asker"), byCancel), nil, []string{"task.failed cancelled"}},
		"CAP has no acknowledgement, but an answer": {as(envelope.CAP, "", well), said("task.accepted", `{}`, "task.progress", `{"pct":1}`), []string{"task.completed"}},
		"nor has AINL":                              {as(envelope.AINL, envelope.Assist, well), said("task.accepted", `{}`), []string{"task.completed"}},
		"a member is gathered at its end":           {as(envelope.CLowl, envelope.Member, well), said("task.accepted", `{}`), []string{"task.completed"}},
		"an overseer speaks for itself":             {as(envelope.CLowl, envelope.Oversee, well), said("task.accepted", `{}`), nil},
		"nothing is said of nothing":                {asked, nil, nil},
	} {
		var got []string
		for _, m := range conversation.Notifications(c.about, c.events) {
			words := string(m.Act)
			switch {
			case m.Data != nil:
				words += " " + string(m.Data)
			case m.Failure.Kind != "":
				words += " " + string(m.Failure.Kind)
			}
			got = append(got, words)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v told as %q; want %q", name, c.events, got, c.want)
		}
	}
}

func TestEveryMessageAnswersTheRequest(t *testing.T) {
	about := ended(envelope.Failed, envelope.Timeout, "too slow")(asked)
	for _, m := range conversation.Notifications(about, said("task.accepted", `{"held":["approval"]}`, "task.progress", `{}`)) {
		if m.From != "worker" || !slices.Equal(m.To, []string{"asker"}) || m.Cause != "m1" || m.Thread != "c1" || m.Trace != "x1" || m.Task != "m1" || m.Type != "search" {
			t.Errorf("%s = %+v; want it from worker to asker, about m1 in c1 and x1", m.Act, m)
		}
		if m.Act == envelope.Fails && (m.Failure.Message != "too slow" || !m.Failure.Retry || m.Answer.Status != envelope.Failed) {
			t.Errorf("failure = %+v; want its words, its answer, and that it may be tried again", m)
		}
	}
	about.Cancels, about.Result.Status = []string{"cn1"}, envelope.Stopped
	if m := conversation.Notifications(about, nil)[0]; m.Act != envelope.Stops || m.Cause != "cn1" {
		t.Errorf("%s answers %q; want a stop that answers cn1 (CLOWL-27)", m.Act, m.Cause)
	}
}

func TestSomeRequestersHaveNoInbox(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*conversation.Request)
		silent bool
	}{
		"CLowl":            {func(*conversation.Request) {}, false},
		"CAP":              {func(a *conversation.Request) { a.Dialect = envelope.CAP }, false},
		"AINL":             {func(a *conversation.Request) { a.Dialect = envelope.AINL }, true},
		"a gathered one":   {func(a *conversation.Request) { a.Tie = envelope.Member }, true},
		"one that assists": {func(a *conversation.Request) { a.Tie = envelope.Assist }, false},
		"nobody":           {func(a *conversation.Request) { a.Requester = "" }, true},
		"mailboxd":         {func(a *conversation.Request) { a.Requester = envelope.Mailboxd }, true},
	} {
		about := asked
		c.change(&about)
		if got := about.Silent(); got != c.silent {
			t.Errorf("%s: Silent() = %t; want %t", name, got, c.silent)
		}
	}
}
