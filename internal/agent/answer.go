package agent

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// However much an agent writes, only so much of it is read into memory.
const (
	maxWhole = 4 << 20 // what is no longer is read whole
	maxTail  = 1 << 20 // of what is longer, the end
	maxText  = 1 << 20 // of a text that becomes a summary, the beginning
)

// An answer is what an agent said: a result in which only what the agent gave
// is set. Kind and err say why there is none.
type answer struct {
	result envelope.Result
	words  jsontext.Value // the object it was read from; nil for a text
	kind   envelope.Kind
	err    error

	trouble trouble // what kept a program from answering anybody

	said []envelope.Message // what an agent of another dialect said beside it
	hold task.Reason        // what its task waits for, when that was no answer

	attached []envelope.Attachment // to the message of CAP that it is

	question *envelope.Result // what the answer is if nobody replies to it in time; nil for none
	unbound  []string         // whose words it hands over that its definition does not bind
}

// answer reads what the agent of the job said: its result file, if it wrote
// one, else its standard output.
func (g *Agent) answer(j task.Job) answer {
	if j.Dir == "" {
		return answer{kind: envelope.OutputInvalid, err: errNothing}
	}
	said, err := g.read(j)
	return g.attribute(j, said, err)
}

// attribute holds what was said against who was asked.
func (g *Agent) attribute(j task.Job, said answer, err error) answer {
	r := said.result
	switch {
	case err != nil:
		return answer{kind: cmp.Or(said.kind, envelope.OutputInvalid), err: err, result: envelope.Result{Cost: r.Cost}, trouble: said.trouble}
	case r.TaskID != "" && r.TaskID != j.Task.ID:
		err = fmt.Errorf("the agent answered for another task, %q", r.TaskID)
		return answer{kind: envelope.IdentityMismatch, err: err}
	case r.AgentID != "" && r.AgentID != g.binding.ID:
		err = fmt.Errorf("the agent answered as another agent, %q", r.AgentID)
		return answer{kind: envelope.IdentityMismatch, err: err}
	}
	return said
}

func (g *Agent) read(j task.Job) (answer, error) {
	if g.binding.Speaks() != envelope.AINL {
		return g.hear(j)
	}
	if hearings[g.binding.Output] != nil {
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
	if err != nil {
		return answer{}, err
	}
	if g.binding.Output == JSON {
		return decodeOutput(raw)
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
	return answer{result: r, words: raw}, nil
}

func decodeOutput(raw []byte) (answer, error) {
	output, findings := envelope.DecodeOutput(raw)
	said := answer{result: envelope.Result{Output: output}, words: raw}
	for _, odd := range findings.Warnings() {
		said.result.Review.Ask(short(odd.String()))
	}
	if err := refusal(findings); err != nil {
		return answer{}, err
	}
	return said, nil
}

// openAnswer opens the result file if there is something in it, else stdout.
func openAnswer(dir string) (*file, error) {
	f, err := openRegular(dir, resultFile)
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

// cutText makes a summary of a text, of which more than maxText was read when
// there is more.
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

// refusal turns what must not be used into an error whose words are bounded.
func refusal(findings envelope.Findings) error {
	if !findings.Refused() {
		return nil
	}
	return fmt.Errorf("the agent's answer is not valid: %s", short(findings.Refusals().String()))
}
