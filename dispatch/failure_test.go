package dispatch_test

import (
	"slices"
	"strings"
	"testing"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// CAP-32.
func TestWorkThatFailedIsTriedAgainAsTheOperatorWants(t *testing.T) {
	s := newStage(t)
	s.retries = 1
	s.actions["pm"] = store.FailureAction{Retry: true}
	s.cast("pm", fails(envelope.Timeout), answers("late"))
	s.cast("qa", fails(envelope.Timeout), answers("late"))
	s.start()
	s.order("T1", "pm")
	s.order("T2", "qa")
	s.await("T1", task.Done)
	s.wantEnd("T1", envelope.OK, "")
	s.wantEnd("T2", envelope.Failed, envelope.Timeout)
}

// CAP-32.
func TestWorkThatFailedIsAnotherAgentsAsTheOperatorWants(t *testing.T) {
	for name, dialect := range map[string]string{
		"CAP":   notice("orchestrator", "T1", "pm", "count them"),
		"CLowl": `{"clowl":"0.2","mid":"T1","ts":1709078400,"p":"REQ","from":"orchestrator","to":"pm","cid":"c","body":{"t":"count","d":{"description":"count them"}}}`,
		"AINL": `{"schema_version":"1.0","task_id":"T1","requester_id":"orchestrator","target_agent":"pm","target_role":"executor",` +
			`"task_type":"work","description":"count them","input":{"refs":[],"payload":{"n":1}}}`,
	} {
		t.Run("CAP-32 "+name, func(t *testing.T) {
			s := newStage(t)
			s.actions["pm"] = store.FailureAction{Reassign: "other"}
			s.allowed["pm"] = []string{} // what the operator wants is no hand-over of the agent's
			s.cast("pm", fails(envelope.Timeout))
			s.cast("other", answers("42"))
			s.start()
			s.line(dialect)
			s.wantEnd("T1", envelope.OK, "")
			s.wantResult("T1", `"agent_id": "other"`, "42")
			job := s.runs("other")[0]
			if job.Task.Requester != "orchestrator" || job.Task.ID != "T1.1" || !strings.Contains(job.Task.Description, "count them") {
				t.Errorf("other is asked %s; want the same request, as T1.1", job.Task.Raw)
			}
		})
	}
}

// CAP-32.
func TestSomebodyIsAskedAboutWorkThatFailedAsTheOperatorWants(t *testing.T) {
	s := newStage(t)
	s.actions["pm"] = store.FailureAction{Escalate: "boss"}
	s.cast("pm", fails(envelope.Timeout), answers("better"))
	s.start()
	s.order("T1", "pm")
	s.wantHeld("T1", task.Reply)
	if got := s.letters("boss"); len(got) != 1 || !strings.Contains(got[0], "no luck") {
		t.Errorf("boss finds %q; want what failed", got)
	}
	s.line(message("user", "T1", "pm", "try the other table"))
	s.wantEnd("T1", envelope.OK, "")
	got := conversationLines(s.runs("pm")[1])
	if !slices.Contains(got, "info user>pm try the other table") {
		t.Errorf("pm goes on with %q; want the reply in it", got)
	}
}
