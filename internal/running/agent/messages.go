package agent

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
)

// readMessages reads the messages of an agent in another dialect: from the result file,
// from standard output, or from the answer text of a profile's program.
func (g *Agent) readMessages(j task.Job) (answer, error) {
	if eventReaders[g.binding.Output] != nil {
		free := j
		free.Task.Contract = nil // the text is messages; the contract applies to their content
		reply, err := g.readTranscript(free)
		if err != nil || reply.result.Status == envelope.Failed {
			return reply, err
		}
		decoded, err := g.decodeMessages(j, []byte(reply.result.Output.Summary))
		if decoded.result.Cost == nil {
			decoded.result.Cost = reply.result.Cost
		}
		var session string
		if id := member(reply.result.Output.Extra, "session_id"); id != nil && json.Unmarshal(id, &session) == nil && err == nil {
			decoded.result.Output.Extra = withText(decoded.result.Output.Extra, "session_id", session)
		}
		return decoded, err
	}
	f, err := openAnswer(j.Dir)
	if err != nil {
		return answer{}, err
	}
	defer f.close()
	text, err := outputEnd(f)
	if err != nil {
		return answer{}, err
	}
	return g.decodeMessages(j, text)
}

// outputEnd reads the output, or its end if it is too long.
func outputEnd(f *file) ([]byte, error) {
	offset := max(0, f.size-maxWhole)
	text, err := f.read(offset, maxWhole)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if offset > 0 { // the first line may be incomplete
		_, rest, _ := strings.Cut(string(text), "\n")
		text = []byte(rest)
	}
	return text, nil
}

// decodeSubmission decodes an answer submitted for an agent, in its own dialect or as an
// AgentTaskResult.
func (g *Agent) decodeSubmission(j task.Job, raw []byte) (answer, error) {
	if speaks := g.binding.Speaks(); speaks != envelope.AINL && envelope.MarkedAs(raw) == speaks {
		return g.decodeMessages(j, raw)
	}
	return decodeAnswer(raw)
}

// decodeMessages makes an answer of messages, or finds the reason why the task waits.
func (g *Agent) decodeMessages(j task.Job, text []byte) (answer, error) {
	messages, findings := dialect.ReceiveAll(g.binding.Speaks(), text, j.Task)
	if err := refusal(findings); err != nil {
		return answer{kind: findings.Kind()}, err
	}
	if !g.opts.Questions {
		clearQuestions(messages)
	}
	t, err := sortMessages(messages, j.Task, g.overseer())
	if err != nil {
		return answer{}, err
	}
	a := answer{messages: t.others, hold: t.hold, unbound: g.unbound(messages), called: calledTools(offered(g, j), messages)}
	if t.answer != nil {
		a.result, a.attached, a.again = g.resultOf(j, *t.answer), t.answer.Attachments, conversation.AsksForAttempt(*t.answer)
		a.object = member(a.result.Encode(), "output")
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

// clearQuestions turns answers that may be questions into plain answers.
func clearQuestions(messages []envelope.Message) {
	for i := range messages {
		if m := &messages[i]; m.Act == envelope.Completes {
			m.WantsReply = false
		}
	}
}

// overseer returns the agent that must approve the answers; "" for none.
func (g *Agent) overseer() string {
	if d := g.binding.Definition; d != nil {
		return d.Overseer
	}
	return ""
}

// resultOf returns the result in a message. A delegation to the overseer is the answer
// itself (CAP-24).
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

// costOf returns the cost in an output, in the form of an answer.
func costOf(output jsontext.Value) []byte {
	if cost := member(output, "cost_used"); cost != nil {
		return fmt.Appendf(nil, `{"cost_used":%s}`, cost)
	}
	return []byte("{}")
}

// artifactsOf returns the files among attachments. A relative path starts in the run
// directory, or else in the mailbox.
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
			uri = envelope.FileURI(path)
		}
		if uri != "" {
			refs = append(refs, envelope.Ref{Kind: "file", URI: uri})
		}
	}
	return refs
}

// unbound names the tools with delivered results that the agent's definition doesn't bind
// (CAP-25), without duplicates.
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

// checkBindings checks delivered tool results against the definition.
func (g *Agent) checkBindings(unbound []string, r *envelope.Result) {
	if len(unbound) > 0 && g.mode(envelope.ControlTools) != envelope.Off {
		g.object(r, envelope.ControlTools, envelope.PolicyViolation, fmt.Sprintf("the agent hands over results of tools that its definition does not bind: %q", unbound))
	}
}

// addMessages adds the agent's messages beside its answer to an outcome. Messages of a
// failed run have no effect.
func addMessages(o *task.Outcome, reply answer) {
	if o.Result.Status == envelope.Failed && reply.result.Status != envelope.Failed {
		return
	}
	o.Messages, o.Hold = reply.messages, reply.hold
}

// addUnanswered sets the result of an outcome for the case that its question gets no reply.
func (g *Agent) addUnanswered(o *task.Outcome, j task.Job, reply answer) {
	if o.Hold != task.Reply || reply.question == nil {
		return
	}
	r := *reply.question
	r.Cost = reply.result.Cost
	reply.result, reply.object, reply.hold = r, member(r.Encode(), "output"), ""
	o.Unanswered = g.complete(j, o.Exit, reply)
}
