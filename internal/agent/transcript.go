package agent

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// A transcript is what a program of a profile has said of its run so far.
type transcript struct {
	text    string // its answer
	session string // by which its user can go on with it
	done    bool   // it has said how it ended
	failed  bool   // badly
	message string // and why
	trouble trouble

	tokens *int64           // in all; nil: unknown, as is cents
	cents  *int64           // a price that it says itself
	steps  map[string]int64 // tokens by the ids of its messages, until it says how many in all

	stepped int64 // the sum of steps
}

// A trouble is what keeps a program from working for anybody, whatever the task.
type trouble int

const (
	none      trouble = iota
	loggedOut         // a person has to log it in
	limited           // it may work later
)

// hearings are how what each program prints is heard, event by event.
var hearings = map[Format]func(t *transcript, kind string, event jsontext.Value){
	Claude: hearClaude, Codex: hearCodex, Cursor: hearCursor, Gemini: hearGemini,
}

// hear takes an event; what is no object is somebody's noise.
func (t *transcript) hear(f Format, text []byte) {
	var event struct {
		Type string `json:"type"`
	}
	if jsontext.Value(text).Kind() == '{' && json.Unmarshal(text, &event, lenient) == nil {
		hearings[f](t, event.Type, text)
	}
}

// begun hears the session of a run that has begun, which is the named member.
func (t *transcript) begun(event jsontext.Value, name string) {
	var id string
	if v := member(event, name); v.Kind() == '"' && json.Unmarshal(v, &id, lenient) == nil {
		t.session = id
	}
}

// step counts a message, of which there may be more to come.
func (t *transcript) step(id string, tokens int64) {
	if id == "" || tokens <= 0 {
		return
	}
	if t.steps == nil {
		t.steps = map[string]int64{}
	}
	more := max(0, tokens-t.steps[id])
	t.steps[id] += more
	t.stepped += more
	t.spent(t.stepped)
}

// spent takes a number of tokens in all; one that is none is not known.
func (t *transcript) spent(tokens int64) {
	if tokens >= 0 {
		t.tokens = &tokens
	}
}

// fail takes why the program says it failed, of which some words say more.
func (t *transcript) fail(why string) {
	t.failed, t.message = true, why
	if t.trouble == none {
		t.trouble = troubleIn(why)
	}
}

// cost is what was spent as far as that is known; nil when it is not.
func (t *transcript) cost() *envelope.Cost {
	switch {
	case t.tokens == nil:
		return nil
	case t.cents == nil:
		return &envelope.Cost{Tokens: *t.tokens, Unpriced: true}
	}
	return &envelope.Cost{Tokens: *t.tokens, USDCents: *t.cents}
}

// result is what was said, as an answer: the text is the summary, or the whole
// output when an object was asked for and it is one.
func (t *transcript) result(j task.Job) (answer, error) {
	said := answer{trouble: t.trouble}
	if !t.done {
		said.result.Cost = t.cost()
		return said, errUnfinished
	}
	said.result.Output.Summary = cutText([]byte(t.text))
	if j.Task.Contract != nil && !t.failed {
		if raw, err := findObject([]byte(t.text), true); err == nil {
			if object, err := decodeOutput(raw); err == nil {
				said = object
			}
		}
	}
	said.result.Cost = t.cost()
	if t.failed {
		said.result.Status = envelope.Failed
		said.result.Error = envelope.Error{Kind: envelope.AgentError, Message: short(t.why())}
	}
	if t.session != "" && len(t.session) <= maxWords {
		said.result.Output.Extra = withText(said.result.Output.Extra, "session_id", t.session)
	}
	return said, nil
}

// why says to a requester what went wrong.
func (t *transcript) why() string {
	switch t.trouble {
	case loggedOut:
		return "the agent is not logged in: " + t.message
	case limited:
		return "the agent has reached a limit of its provider: " + t.message
	}
	return "the agent says that it failed: " + t.message
}

// withText returns an object with one more member, unless it has that one.
func withText(object jsontext.Value, name, value string) jsontext.Value {
	all := members(object)
	if all[name] != nil {
		return object
	}
	quoted, err := jsontext.AppendQuote(nil, value)
	if err != nil {
		return object // no text
	}
	if object == nil {
		object = jsontext.Value("{}")
	}
	key, _ := jsontext.AppendQuote(nil, name)
	inside := slices.Concat([]byte{'{'}, key, []byte{':'}, quoted)
	if rest := object[1:]; len(all) > 0 {
		return slices.Concat(inside, []byte{','}, rest)
	}
	return append(inside, '}')
}
