package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

// Limits on the bytes of an answer that are read into memory.
const (
	maxWhole = 4 << 20 // an answer up to this size is read whole
	maxTail  = 1 << 20 // from the end of a longer one
	maxText  = 1 << 20 // from the beginning of a text, for the summary
)

// An answer is the decoded answer of an agent. Its result has only the fields that the
// agent set. Kind and err say why there is no answer.
type answer struct {
	result envelope.Result
	object jsontext.Value // the decoded object; nil for a text
	kind   envelope.Kind
	err    error

	blocker blocker // why the program could not work for any task
	acted   bool    // it used a tool before that
	resets  int64   // when its limit ends, in seconds since 1970, as the program reports it; 0: unknown

	retryAfter time.Duration // likewise, after the end of the run

	messages []envelope.Message // messages beside the answer, in another dialect
	hold     task.Reason        // the reason why the task waits, if there is no answer

	attached []envelope.Attachment // of the CAP message with the answer

	question *envelope.Result // the result if the question gets no reply in time; nil for none
	again    bool             // the agent says that another attempt may succeed (CLUTCH-81)
	called   []string         // tools that the agent calls, or whose results it reports, in messages of Clutch
	unbound  []string         // tools with delivered results that the agent's definition doesn't bind
}

// answer reads the agent's answer: the result file if there is one, or else standard
// output.
func (g *Agent) answer(j task.Job) answer {
	if j.Dir == "" {
		return answer{kind: envelope.OutputInvalid, err: errNothing}
	}
	reply, err := g.read(j)
	return g.checkIdentity(j, reply, err)
}

// checkIdentity checks the ids in an answer against the job.
func (g *Agent) checkIdentity(j task.Job, reply answer, err error) answer {
	r := reply.result
	switch {
	case err != nil:
		return answer{kind: cmp.Or(reply.kind, envelope.OutputInvalid), err: err, result: envelope.Result{Cost: r.Cost}, blocker: reply.blocker, resets: reply.resets, retryAfter: reply.retryAfter, acted: reply.acted}
	case r.TaskID != "" && r.TaskID != j.Task.ID:
		err = fmt.Errorf("the agent answered for another task, %q", r.TaskID)
		return answer{kind: envelope.IdentityMismatch, err: err}
	case r.AgentID != "" && r.AgentID != g.binding.ID:
		err = fmt.Errorf("the agent answered as another agent, %q", r.AgentID)
		return answer{kind: envelope.IdentityMismatch, err: err}
	}
	return reply
}

func (g *Agent) read(j task.Job) (answer, error) {
	if g.binding.Speaks() != envelope.AINL {
		return g.readMessages(j)
	}
	if g.binding.Service != nil {
		return g.binding.readService(j)
	}
	if eventReaders[g.binding.Output] != nil {
		return g.readTranscript(j)
	}
	f, err := openAnswer(j.Dir)
	if err != nil {
		return answer{}, err
	}
	defer f.close()
	if g.binding.Output == Text {
		return readText(f)
	}
	raw, err := readObject(f)
	if errors.Is(err, errNoObject) {
		return answer{}, fmt.Errorf("%w; if it answers in words, set exec.output: text for agent %q", err, g.binding.ID)
	}
	if err != nil {
		return answer{}, err
	}
	switch g.binding.Output {
	case JSON:
		return decodeOutput(raw)
	case Dispatched:
		return decodeDispatched(raw, j)
	}
	return decodeAnswer(raw)
}

func decodeAnswer(raw []byte) (answer, error) {
	r, findings := envelope.DecodeAnswer(raw)
	if err := refusal(findings); err != nil {
		return answer{}, err
	}
	if r.Status == "" && r.Output.Summary == "" {
		return answer{}, errors.New("the agent's answer has neither a status nor a summary")
	}
	return answer{result: r, object: raw}, nil
}

func decodeOutput(raw []byte) (answer, error) {
	output, findings := envelope.DecodeOutput(raw)
	reply := answer{result: envelope.Result{Output: output}, object: raw}
	for _, odd := range findings.Warnings() {
		reply.result.Review.Ask(short(odd.String()))
	}
	if err := refusal(findings); err != nil {
		return answer{}, err
	}
	return reply, nil
}

// openAnswer opens the result file if it isn't empty, or else stdout.
func openAnswer(dir string) (*file, error) {
	f, err := openRegular(workDir(dir), resultFile)
	if err == nil && f.size > 0 {
		return f, nil
	}
	if err == nil {
		f.close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	f, err = openRegular(dir, runner.StdoutFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNothing
	}
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return f, nil
}

// readText makes a summary of any bytes.
func readText(f *file) (answer, error) {
	text, err := f.read(0, maxText+1)
	if err != nil {
		return answer{}, fmt.Errorf("read answer: %w", err)
	}
	return answer{result: envelope.Result{Output: envelope.Output{Summary: cutText(text)}}}, nil
}

// cutText makes a summary of a text. A text longer than maxText is cut.
func cutText(text []byte) string {
	note := ""
	if len(text) > maxText {
		text, note = text[:maxText], "\n[cut: the whole text is among the artifacts]"
	}
	return strings.TrimRight(strings.ToValidUTF8(string(text), "\uFFFD"), " \t\r\n") + note
}

// readObject finds the one object that is the answer.
func readObject(f *file) ([]byte, error) {
	whole := f.size <= maxWhole
	offset, length := int64(0), int64(maxWhole)
	if !whole {
		offset, length = f.size-maxTail, maxTail
	}
	text, err := f.read(offset, length)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return findObject(text, whole)
}

// refusal returns an error with a bounded text for refused findings; nil for none.
func refusal(findings envelope.Findings) error {
	if !findings.Refused() {
		return nil
	}
	return fmt.Errorf("the agent's answer is not valid: %s", short(findings.Refusals().String()))
}
