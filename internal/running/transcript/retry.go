package transcript

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// unserved says in a clause what an HTTP status of a provider means; 0: there was no answer.
func unserved(status int) string {
	switch {
	case status == 0:
		return "the provider can't be reached"
	case status == 401 || status == 403:
		return "the provider refuses the login"
	case status == 429:
		return "the provider limits requests"
	case status == 503 || status == 529:
		return "the provider is overloaded"
	}
	return fmt.Sprintf("the provider answers with status %d", status)
}

// A retry is an attempt of a program to reach its provider again.
type retry struct {
	why  string        // a clause
	n    int           // its number, the first is 1; 0: unknown
	most int           // how many there will be; 0: unknown
	in   time.Duration // when it begins; 0: unknown
}

func (r retry) line() []Line {
	words := r.why + "; it tries again"
	if r.n > 0 {
		words = fmt.Sprintf("%s; attempt %d", r.why, r.n)
	}
	if r.n > 0 && r.most > 0 {
		words += fmt.Sprintf(" of %d", r.most)
	}
	if r.in > 0 {
		words += ", next in " + wait(r.in)
	}
	return []Line{{Notice, words}}
}

// wait formats a pause, rounded up.
func wait(d time.Duration) string {
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f s", math.Ceil(d.Seconds()))
	}
	return fmt.Sprintf("%.0f min", math.Ceil(d.Minutes()))
}

// claudeRetry reads the event system/api_retry of Claude Code, as version 2.1.197 prints it.
func claudeRetry(e *event) []Line {
	status, _ := strconv.Atoi(string(e.ErrorStatus)) // null: no answer
	delay := milliseconds(e.RetryDelay)
	return retry{unserved(status), e.Attempt, e.MaxRetries, delay}.line()
}

var (
	// reconnecting matches the words of Codex before it tries its provider again:
	// codex-rs/core/src/session/turn.rs, version 0.169.0.
	reconnecting = regexp.MustCompile(`^Reconnecting\.\.\. (?:(\d+)/(\d+)|waiting for network)(?: \((.*)\))?$`)
	// statusWords matches the status of an answer in such words.
	statusWords = regexp.MustCompile(`\bstatus:? (\d{3})\b`)
)

// codexRetry reads the event error of Codex, if it only says that Codex tries again.
func codexRetry(words string) ([]Line, bool) {
	m := reconnecting.FindStringSubmatch(words)
	if m == nil {
		return nil, false
	}
	r := retry{why: unserved(0)}
	r.n, _ = strconv.Atoi(m[1]) // "" while it waits for the network
	r.most, _ = strconv.Atoi(m[2])
	switch status := statusWords.FindStringSubmatch(m[3]); {
	case status != nil:
		code, _ := strconv.Atoi(status[1])
		r.why = unserved(code)
	case strings.HasPrefix(m[3], "stream disconnected"):
		r.why = "the connection to the provider broke"
	}
	return r.line(), true
}

// keepAlive are the types of events that only say that a program lives.
var keepAlive = []string{"keep_alive", "keepalive", "ping", "heartbeat", "rate_limit_event"}

// IsIdle reports whether a line of a program's output (claude, codex, cursor, gemini, opencode) is
// no sign that its model or a tool goes on: it is no event, or one with which the program tries
// its provider again, warns, or only shows that it lives.
func IsIdle(program string, line []byte) bool {
	var e event
	if json.Unmarshal(line, &e, lenient) != nil || slices.Contains(keepAlive, e.Type) {
		return true
	}
	switch {
	case e.Type == "error", e.Type == "system" && e.Subtype == "api_retry":
		return true
	case program == "codex":
		var item struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(e.Item, &item, lenient) // no item: ""
		return item.Type == "error"
	}
	return program == "claude" && e.Type == "assistant" && e.Error != nil // of the provider
}

// Waiting returns what an event says of a provider that a program tries again; "" if it says
// nothing of it.
func Waiting(program string, line []byte) string {
	var e event
	if json.Unmarshal(line, &e, lenient) != nil {
		return ""
	}
	var lines []Line
	switch {
	case program == "claude" && e.Type == "system" && e.Subtype == "api_retry":
		lines = claudeRetry(&e)
	case program == "codex" && e.Type == "error":
		lines, _ = codexRetry(text(e.Message))
	}
	if len(lines) == 0 {
		return ""
	}
	return lines[0].Text
}

// Plain returns words of a program in which the JSON object of a provider's error is replaced
// with its message.
func Plain(words string) string {
	at := strings.Index(words, `{"`)
	if at < 0 {
		return words
	}
	decoder := jsontext.NewDecoder(strings.NewReader(words[at:]), lenient)
	object, err := decoder.ReadValue()
	if err != nil {
		return words
	}
	var body struct {
		Message string         `json:"message"`
		Error   jsontext.Value `json:"error"`
	}
	var failure struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(object, &body, lenient) != nil {
		return words
	}
	_ = json.Unmarshal(body.Error, &failure, lenient) // without words then
	message := cmp.Or(failure.Message, body.Message)
	if message == "" {
		return words
	}
	return words[:at] + message + words[at+int(decoder.InputOffset()):]
}
