package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

// A part is what an agent does at one of its runs, in order over all its tasks;
// the last one is repeated.
type part func(j task.Job) task.Outcome

// A stage is an engine whose agents speak CAP, each with its parts.
type stage struct {
	*engine
	overseers map[string]string
	allowed   map[string][]string // whom an agent may hand work to; nil: anybody
	actions   map[string]store.FailureAction

	mu   sync.Mutex // guards jobs
	jobs []task.Job
}

func newStage(t *testing.T) *stage {
	s := &stage{engine: newEngine(t), overseers: map[string]string{}, allowed: map[string][]string{}, actions: map[string]store.FailureAction{}}
	s.mode = envelope.Enforce
	s.retries = 0
	s.opts.Depth = 5
	s.spoken = store.Protocol{
		Dialect:  func(string) envelope.Dialect { return envelope.CAP },
		Overseer: func(agent string) string { return s.overseers[agent] },
		MayDelegate: func(from, to string) string {
			if may := s.allowed[from]; may != nil && !slices.Contains(may, to) {
				return from + " may not hand work to " + to
			}
			return ""
		},
		OnFailure: func(agent string, _ envelope.Kind) store.FailureAction { return s.actions[agent] },
		Takers:    func(string, map[string][]string) []string { return nil },
		Supports:  func(string) []string { return nil },
		Agents:    func() []string { return nil },
		Secret:    func(string) string { return "" },
		Rounds:    2,
		Broadcast: 16,
	}
	return s
}

// cast gives an agent its parts.
func (s *stage) cast(agent string, parts ...part) {
	at := 0
	s.plays[agent] = func(_ context.Context, j task.Job) task.Outcome {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.jobs = append(s.jobs, j)
		now := parts[min(at, len(parts)-1)]
		at++
		o := now(j)
		o.Exit.Started, o.Exit.Finished = time.Now(), time.Now()
		return o
	}
}

// runs returns the jobs that an agent had.
func (s *stage) runs(agent string) (jobs []task.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.Task.Agent == agent {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// line appends a line to the task files, and has it taken in.
func (s *stage) line(text string) {
	s.t.Helper()
	_, _, err := mailbox.Append(s.parts.Box.Path(), []byte(text))
	s.must(err)
	s.Look(s.t.Context())
	s.must(s.Idle(s.t.Context()))
}

// order has orchestrator ask an agent for something in CAP.
func (s *stage) order(id, agent string) {
	s.t.Helper()
	s.line(notice("orchestrator", id, agent, "look at "+id))
}

func notice(from, id, to, words string) string {
	return fmt.Sprintf(`{"type":"delegation_notice","task_id":%q,"sender_id":%q,"recipient_id":%q,"context_summary":%q,"attachments":[]}`, id, from, to, words)
}

func message(from, id, to, words string) string {
	return fmt.Sprintf(`{"type":"message","task_id":%q,"sender_id":%q,"recipient_id":%q,"content":%q}`, id, from, to, words)
}

func question(from, id, to, words string) string {
	return strings.TrimSuffix(message(from, id, to, words), "}") + `,"expects_reply":true}`
}

func inquiry(from, id, to, words string) string {
	return fmt.Sprintf(`{"type":"oversight_inquiry","task_id":%q,"sender_id":%q,"recipient_id":%q,"inquiry":%q}`, id, from, to, words)
}

func refusal(from, id, to, words string) string {
	return fmt.Sprintf(`{"type":"error_response","task_id":%q,"sender_id":%q,"recipient_id":%q,"error_code":403,"error_message":%q}`, id, from, to, words)
}

// answers is a part that answers its task.
func answers(words string) part {
	return func(j task.Job) task.Outcome { return decision(j, words) }
}

// fails is a part that fails with a kind.
func fails(kind envelope.Kind) part {
	return func(j task.Job) task.Outcome {
		o := decision(j, "")
		o.Result.Status, o.Result.Error = envelope.Failed, envelope.Error{Kind: kind, Message: "no luck"}
		return o
	}
}

// says is a part that says lines of CAP, and waits for something; "" answers too.
func says(hold task.Reason, lines ...string) part {
	return func(j task.Job) task.Outcome {
		o := decision(j, "said")
		if o.Hold = hold; hold != "" {
			o.Result = envelope.Result{}
		}
		o.Messages = spoken(j, lines...)
		return o
	}
}

func spoken(j task.Job, lines ...string) (said []envelope.Message) {
	codec, _ := dialect.Of(envelope.CAP)
	for _, line := range lines {
		m, findings := codec.Receive([]byte(line), j.Task)
		if findings.Refused() {
			panic(findings.String())
		}
		said = append(said, m)
	}
	return said
}

// tied is a part that hands work on in CAP with a tie that CAP has no word for.
func tied(tie envelope.Tie, line string) part {
	return func(j task.Job) task.Outcome {
		o := says(task.Children, line)(j)
		o.Messages[0].Tie = tie
		return o
	}
}

// conversationLines returns a line for each message of a conversation.
func conversationLines(j task.Job) (lines []string) {
	for _, m := range j.Conversation {
		lines = append(lines, fmt.Sprintf("%s %s>%s %s", m.Act, m.From, strings.Join(m.To, ","), m.Text))
	}
	return lines
}

// wantEnd fails the test when a task has not ended so.
func (s *stage) wantEnd(id string, status envelope.Status, kind envelope.Kind) {
	s.t.Helper()
	if row := s.row(id); row.State != task.Done || row.Status != status || row.Kind != kind {
		kinds, data := s.history(id)
		s.t.Errorf("%s is %s %v, %s (%s); want done, %s (%s)\n%v %s", id, row.State, row.Reasons, row.Status, row.Kind, status, kind, kinds, data)
	}
}

// aside changes the ledger while no daemon has it.
func (s *stage) aside(fn func(tx *ledger.Tx) error) {
	s.t.Helper()
	memory, _, err := ledger.Open(s.parts.State.LedgerPath())
	s.must(err)
	s.must(memory.Update(context.Background(), fn))
	s.must(memory.Close())
}

// exits is what a run looks like that came to a bad end.
func exits(code int) task.Exit { return task.Exit{Code: code} }
