package agent

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	events "mailboxd/internal/running/transcript"
)

// A transcript is what a profile's program has printed about its run.
type transcript struct {
	text    string        // the answer
	session string        // to continue the session
	done    bool          // the program has reported its end
	failed  bool          // with a failure
	message string        // of the failure
	kind    envelope.Kind // of the failure, if the program names it; "": AgentError
	blocker blocker
	resets  int64 // when the provider's limit ends, in seconds since 1970; 0: unknown
	format  Format

	before int64            // tokens of the session before the run, which its program counts again
	tokens *int64           // total; nil: unknown, as cents
	cents  *int64           // a price that the program reports
	steps  map[string]int64 // tokens by message id, until the program reports a total

	stepped int64 // the sum of steps
	uses    toolUses
	acted   bool // it used a tool, and may have changed something

	retryAfter time.Duration // after the end of the run, when the provider serves again; 0: unknown
	turned     bool          // the next text is that of another turn, of Gemini

	speaking string   // the message that text is of, of OpenCode, as the next two
	dollars  *big.Rat // the sum of the prices of steps; nil: none so far
	unpriced bool     // a step has no price

	unknown map[string]int // how many events there were of kinds that the profile doesn't know, by kind
}

// A blocker is a problem that keeps a program from working on any task.
type blocker int

const (
	none       blocker = iota
	loggedOut          // a person has to log in
	limited            // a usage limit of the provider: it works again when that ends
	throttled          // a limit of the provider on requests or tokens in a minute
	overloaded         // the provider can't serve it in this moment
	busy               // it may work in a moment
)

// eventReaders read the events of each known program.
var eventReaders = map[Format]func(t *transcript, kind string, event jsontext.Value){
	Claude: readClaude, Codex: readCodex, Cursor: readCursor, Gemini: readGemini,
	OpenCode: readOpenCode, ACP: readACP,
}

// readEvent reads an event; anything but an object is ignored.
func (t *transcript) readEvent(f Format, text []byte) {
	var event struct {
		Type string `json:"type"`
	}
	t.format = f
	if jsontext.Value(text).Kind() == '{' && json.Unmarshal(text, &event, lenient) == nil {
		eventReaders[f](t, event.Type, text)
		t.countUnknown(event.Type)
	}
}

// maxUnknown limits the kinds of unknown events that are told apart.
const maxUnknown = 20

// countUnknown counts an event of a kind that the profile doesn't know. Its line stays in the
// output of the run.
func (t *transcript) countUnknown(kind string) {
	if kind == "" || slices.Contains(recipes[Profile(t.format)].events, kind) {
		return
	}
	if kind = short(kind); t.unknown[kind] == 0 && len(t.unknown) == maxUnknown {
		return
	}
	if t.unknown == nil {
		t.unknown = map[string]int{}
	}
	t.unknown[kind]++
}

// readSession reads the session from the named member of an event.
func (t *transcript) readSession(event jsontext.Value, name string) {
	var id string
	if v := member(event, name); v.Kind() == '"' && json.Unmarshal(v, &id, lenient) == nil {
		t.session = id
	}
}

// step counts a message that may have more parts.
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

// spent sets the total number of tokens; a negative number is unknown.
func (t *transcript) spent(tokens int64) {
	if tokens >= 0 {
		tokens = max(0, tokens-t.before)
		t.tokens = &tokens
	}
}

// fail records a failure, and a blocker if the text names one.
func (t *transcript) fail(why string) {
	t.failed, t.message = true, events.Plain(why)
	if t.blocker == none {
		t.blocker = t.format.blockerIn(why)
	}
}

// cost returns the known cost; nil if it is unknown.
func (t *transcript) cost() *envelope.Cost {
	switch {
	case t.tokens == nil:
		return nil
	case t.cents == nil:
		return &envelope.Cost{Tokens: *t.tokens, Unpriced: true}
	}
	return &envelope.Cost{Tokens: *t.tokens, USDCents: *t.cents}
}

// result returns the answer: the text is the summary, or the whole output if an object was
// requested and the text is one.
func (t *transcript) result(j task.Job) (answer, error) {
	reply := answer{blocker: t.blocker, resets: t.resets, retryAfter: t.retryAfter, acted: t.acted}
	if !t.done {
		reply.result.Cost = t.cost()
		return reply, errUnfinished
	}
	reply.result.Output.Summary = cutText([]byte(t.text))
	if j.Task.Contract != nil && !t.failed {
		if raw, err := findObject([]byte(t.text), true); err == nil {
			if object, err := decodeOutput(raw); err == nil {
				reply = object
			}
		}
	}
	reply.result.Cost = t.cost()
	if t.failed {
		reply.result.Status = envelope.Failed
		reply.result.Error = envelope.Error{Kind: cmp.Or(t.kind, envelope.AgentError), Message: short(t.why())}
	}
	if t.session != "" && len(t.session) <= maxQuote {
		reply.result.Output.Extra = withText(reply.result.Output.Extra, "session_id", t.session)
	}
	if len(t.unknown) > 0 {
		if counts, err := json.Marshal(t.unknown, json.Deterministic(true)); err == nil { // its keys can be other than UTF-8
			reply.result.Output.Extra = withMember(reply.result.Output.Extra, "unknown_events", counts)
		}
	}
	return reply, nil
}

// why returns the reason of a failure for the requester.
func (t *transcript) why() string {
	switch t.blocker {
	case loggedOut:
		if remedy := remedyOf(t.format); remedy != "" {
			return fmt.Sprintf("the agent is not logged in (%s): %s", remedy, t.message)
		}
		return "the agent is not logged in: " + t.message
	case limited, throttled:
		return "the agent has reached a limit of its provider: " + t.message
	case overloaded:
		return "the agent's provider is overloaded: " + t.message
	case busy:
		return "the agent's provider did not serve it: " + t.message
	}
	if t.kind != "" {
		return t.message
	}
	return "the agent says that it failed: " + t.message
}

// withText returns an object with one more text, unless it has that member.
func withText(object jsontext.Value, name, value string) jsontext.Value {
	quoted, err := jsontext.AppendQuote(nil, value)
	if err != nil {
		return object // not a text
	}
	return withMember(object, name, quoted)
}

// withMember returns an object with one more member, unless it has that member.
func withMember(object jsontext.Value, name string, value jsontext.Value) jsontext.Value {
	all := members(object)
	if all[name] != nil {
		return object
	}
	if object == nil {
		object = jsontext.Value("{}")
	}
	key, _ := jsontext.AppendQuote(nil, name)
	inside := slices.Concat([]byte{'{'}, key, []byte{':'}, value)
	if rest := object[1:]; len(all) > 0 {
		return slices.Concat(inside, []byte{','}, rest)
	}
	return append(inside, '}')
}
