package agent

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/task"
)

// hear reads the messages that an agent of another dialect said: in its result
// file, on standard output, or in the text that a program of a profile answered.
func (g *Agent) hear(j task.Job) (answer, error) {
	if hearings[g.binding.Output] != nil {
		free := j
		free.Task.Contract = nil // its text is messages, whatever they have to hold
		said, err := g.readTranscript(free)
		if err != nil || said.result.Status == envelope.Failed {
			return said, err
		}
		heard, err := g.understand(j, []byte(said.result.Output.Summary))
		if heard.result.Cost == nil {
			heard.result.Cost = said.result.Cost
		}
		var session string
		if id := member(said.result.Output.Extra, "session_id"); id != nil && json.Unmarshal(id, &session) == nil && err == nil {
			heard.result.Output.Extra = withText(heard.result.Output.Extra, "session_id", session)
		}
		return heard, err
	}
	f, err := openAnswer(j.Dir)
	if err != nil {
		return answer{}, err
	}
	defer f.close()
	text, err := printedEnd(f)
	if err != nil {
		return answer{}, err
	}
	return g.understand(j, text)
}

// printedEnd reads what was printed, or the end of what is longer than can be read.
func printedEnd(f *file) ([]byte, error) {
	offset := max(0, f.size-maxWhole)
	text, err := f.read(offset, maxWhole)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if offset > 0 { // the first line may be the end of one
		_, rest, _ := strings.Cut(string(text), "\n")
		text = []byte(rest)
	}
	return text, nil
}

// submitted reads what somebody submitted for an agent: in its own dialect, or as
// our tools do.
func (g *Agent) submitted(j task.Job, raw []byte) (answer, error) {
	if speaks := g.binding.Speaks(); speaks != envelope.AINL && envelope.MarkedAs(raw) == speaks {
		return g.understand(j, raw)
	}
	return decodeAnswer(raw)
}

// understand makes an answer of messages, or finds what the task waits for.
func (g *Agent) understand(j task.Job, text []byte) (answer, error) {
	messages, findings := dialect.HearAll(g.binding.Speaks(), text, j.Task)
	if err := refusal(findings); err != nil {
		return answer{kind: findings.Kind()}, err
	}
	if !g.opts.Questions {
		unquestioned(messages)
	}
	t, err := takeTurn(messages, j.Task, g.overseer())
	if err != nil {
		return answer{}, err
	}
	a := answer{said: t.said, hold: t.hold, unbound: g.unbound(messages)}
	if t.answer != nil {
		a.result, a.attached = g.resultOf(j, *t.answer), t.answer.Attachments
		a.words = member(a.result.Encode(), "output")
	} else {
		a.result.Status, a.result.Output.Summary = envelope.Partial, t.reason()
	}
	if t.question != nil && t.hold == task.Reply {
		r := g.resultOf(j, *t.question)
		a.question, a.result.Cost, a.attached = &r, r.Cost, t.question.Attachments
	}
	for _, f := range findings {
		if strings.HasSuffix(f.Message, dialect.LeftOut) {
			a.result.Review.Ask(short(f.String()))
		}
	}
	return a, nil
}

// unquestioned makes plain answers of those that may be questions.
func unquestioned(messages []envelope.Message) {
	for i := range messages {
		if m := &messages[i]; m.Act == envelope.Completes {
			m.WantsReply = false
		}
	}
}

// overseer is who approves of what the agent answers; "" for nobody.
func (g *Agent) overseer() string {
	if d := g.binding.Definition; d != nil {
		return d.Overseer
	}
	return ""
}

// resultOf is the result that a message is. Work handed to the overseer is the
// answer as it stands there (CAP-24).
func (g *Agent) resultOf(j task.Job, m envelope.Message) envelope.Result {
	r := m.Answer
	if m.Act == envelope.Delegates {
		r = envelope.Result{Status: envelope.OK, Output: envelope.Output{Summary: m.Text, Extra: m.Request.Payload}}
	}
	if len(m.Attachments) > 0 {
		r.Artifacts = artifactsOf(j, m.Attachments)
	}
	if r.Cost == nil {
		spent, _ := envelope.DecodeAnswer(costOf(r.Output.Extra))
		r.Cost = spent.Cost
	}
	return r
}

// costOf is what an output says was spent, as an answer says it.
func costOf(output jsontext.Value) []byte {
	if cost := member(output, "cost_used"); cost != nil {
		return fmt.Appendf(nil, `{"cost_used":%s}`, cost)
	}
	return []byte("{}")
}

// artifactsOf returns the files among attachments. A path that is relative starts
// in the run directory, where the agent ran, or else in the mailbox.
func artifactsOf(j task.Job, list []envelope.Attachment) []envelope.Ref {
	var refs []envelope.Ref
	for _, a := range list {
		uri := a.URL
		if a.Path != "" {
			path := a.Path
			local := filepath.Join(j.Dir, path)
			if there, _ := within(j.Dir, local); there && !filepath.IsAbs(path) && j.Dir != "" {
				path = local
			}
			uri = fileURI(path)
		}
		if uri != "" {
			refs = append(refs, envelope.Ref{Kind: "file", URI: uri})
		}
	}
	return refs
}

// unbound names the tools whose results the agent hands over although its
// definition does not bind them (CAP-25), each once.
func (g *Agent) unbound(messages []envelope.Message) []string {
	d := g.binding.Definition
	if d == nil {
		return nil
	}
	var names []string
	seen := map[string]bool{}
	for _, m := range messages {
		for _, a := range m.Attachments {
			name := "mcp:" + a.Server + "/" + a.Tool
			if a.Type == "tool_call_result" && !d.Binds(a.Server, a.Tool) && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// keepBindings holds what was handed over against the definition.
func (g *Agent) keepBindings(unbound []string, r *envelope.Result) {
	if len(unbound) > 0 && g.mode(envelope.ControlTools) != envelope.Off {
		g.object(r, envelope.ControlTools, envelope.PolicyViolation, fmt.Sprintf("the agent hands over results of tools that its definition does not bind: %q", unbound))
	}
}

// addMessages adds the agent's messages beside its answer to an outcome. Those of a
// run that went wrong, or broke its terms, have no effect.
func addMessages(o *task.Outcome, said answer) {
	if o.Result.Status == envelope.Failed && said.result.Status != envelope.Failed {
		return
	}
	o.Messages, o.Hold = said.said, said.hold
}

// addUnanswered adds to an outcome that waits for a reply what the answer is if there
// is none in time.
func (g *Agent) addUnanswered(o *task.Outcome, j task.Job, said answer) {
	if o.Hold != task.Reply || said.question == nil {
		return
	}
	r := *said.question
	r.Cost = said.result.Cost
	said.result, said.words, said.hold = r, member(r.Encode(), "output"), ""
	o.Unanswered = g.complete(j, o.Exit, said)
}
