package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/artifact"
)

// upTo is a policy by which an agent sees at most what is internal, and those who
// are cleared what is restricted.
func upTo(cleared ...string) func(envelope.Task, time.Time) task.Verdict {
	most := map[string]envelope.Sensitivity{}
	for _, agent := range cleared {
		most[agent] = envelope.Restricted
	}
	return func(t envelope.Task, _ time.Time) task.Verdict {
		if t.Sensitivity > max(most[t.Agent], envelope.Internal) {
			return task.Verdict{Findings: envelope.Findings{{Kind: envelope.PolicyViolation, Field: "sensitivity", Message: "is " + t.Sensitivity.String()}}}
		}
		return task.Verdict{Admit: true}
	}
}

const secretly = `"sensitivity":"confidential"`

// AINL-44: CAP has no word for it, and a name for the work is no way round.
func TestWhatIsHandedOnIsAsSensitiveAsWhatItComesFrom(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(task.Children, notice("pm", "T1.1", "lead", "count them")), answers("counted"))
	s.cast("lead", says(task.Children, notice("lead", "T1.1.1", "clerk", "count these")), answers("not by clerk"))
	s.cast("clerk", answers("never"))
	s.judge = upTo("pm", "lead")
	s.start()
	s.send("T1", "pm", secretly)
	s.must(s.Idle(t.Context()))
	s.wantEnd("T1", envelope.OK, "")
	s.wantEnd("T1.1", envelope.OK, "")
	s.wantEnd("T1.1.1", envelope.Rejected, envelope.PolicyViolation)
	if got := s.runs("lead")[0].Task.Sensitivity; got != envelope.Confidential {
		t.Errorf("lead runs with what is %s; want confidential", got)
	}
	if len(s.runs("clerk")) != 0 {
		t.Error("clerk ran; want it to see nothing")
	}
}

// AINL-44, CLUTCH-73: what a request says of itself is no way round an artifact, for its run and for the tasks below.
func TestATaskIsAsSensitiveAsItsArtifacts(t *testing.T) {
	s := newStage(t)
	s.cast("pm", says(task.Children, notice("pm", "T1.1", "clerk", "count them")), answers("not by clerk"))
	s.cast("clerk", answers("never"))
	s.judge = upTo("pm")
	s.start()
	e, err := s.parts.Artifacts.Put(strings.NewReader("a secret"), artifact.MaxRun)
	s.must(err)
	s.must(s.parts.Artifacts.SetNote(e.Digest, artifact.Note{Sensitivity: "confidential"}))
	refs := `"refs":[{"kind":"file","uri":"` + envelope.ArtifactURI(e.Digest) + `"}]`
	for id, agent := range map[string]string{"T1": "pm", "T2": "clerk"} {
		s.say(strings.Replace(request(id, agent, `"sensitivity":"public"`), `"refs":[]`, refs, 1))
	}
	s.must(s.Idle(t.Context()))
	s.wantEnd("T1", envelope.OK, "")
	s.wantEnd("T1.1", envelope.Rejected, envelope.PolicyViolation)
	s.wantEnd("T2", envelope.Rejected, envelope.PolicyViolation)
	if got := s.runs("pm")[0].Task.Sensitivity; got != envelope.Confidential {
		t.Errorf("pm runs with what is %s; want confidential", got)
	}
	if len(s.runs("clerk")) != 0 {
		t.Error("clerk ran; want it to see nothing")
	}
}

// AINL-44, CAP-24.
func TestAnOverseerSeesOnlyWhatItMaySee(t *testing.T) {
	for name, c := range map[string]struct {
		cleared []string
		status  envelope.Status
		kind    envelope.Kind
	}{
		"and it may":     {[]string{"analyst", "qa"}, envelope.OK, ""},
		"and it may not": {[]string{"analyst"}, envelope.Failed, envelope.OversightExpired},
	} {
		t.Run("CAP-24 "+name, func(t *testing.T) {
			s := newReview(t)
			s.cast("qa", says(task.Reply, message("qa", "T1.review", "tester", "verified")))
			s.judge = upTo(c.cleared...)
			s.start()
			s.send("T1", "analyst", secretly)
			s.must(s.Idle(t.Context()))
			s.wantEnd("T1", c.status, c.kind)
			for _, job := range s.runs("qa") {
				if c.kind != "" || job.Task.Sensitivity != envelope.Confidential {
					t.Errorf("qa runs with what is %s; want confidential, if it may", job.Task.Sensitivity)
				}
			}
		})
	}
}

// AINL-44: anyone who is asked with others, or in a line of AINL, or again.
func TestALineOfAnAgentAtWorkIsAsSensitiveAsItsTask(t *testing.T) {
	e, words := members(t, "chief")
	e.supports, e.most = map[string][]string{"quick": {"work"}, "other": {"work"}}, 4
	e.plays["other"] = quick
	e.judge = upTo("chief")
	e.start()
	e.send("first", "chief", secretly)
	e.awaitWork("first")
	e.ask("chief", "a1", "quick")
	e.say(word{mid: "m1", p: "REQ", from: "chief", to: `["quick","other"]`}.line())
	for _, id := range []string{"a1", "m1"} {
		if row := e.await(id, task.Done); row.Status == envelope.OK {
			t.Errorf("%s ends %s; want nobody to see it", id, row.Status)
		}
	}
	if row := e.row("a1"); row.Kind != envelope.PolicyViolation {
		t.Errorf("a1 ends %s (%s); want policy_violation", row.Status, row.Kind)
	}
	if err := e.Retry(t.Context(), "a1", me); err == nil {
		t.Error("Retry(a1) = nil; want that it is still refused")
	}
	close(words["chief"])
	e.must(e.Idle(t.Context()))
}
