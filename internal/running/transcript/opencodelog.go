package transcript

import (
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

var (
	// What opencode prints with --print-logs, version 1.18.33.
	openCodeLog    = regexp.MustCompile(`^timestamp=(\S+) level=[A-Z]+ run=[0-9a-f]+ message=`)
	openCodeStream = regexp.MustCompile(` message="stream error" .*\berror\.error="(?:[A-Za-z_]+: )?(.*)"$`)
	// A request for a title is small.
	openCodeAnswer = regexp.MustCompile(` message="stream error" .*? session\.id=(\S+) small=false `)
)

// A Refusal is an answer of a provider with which the model of opencode can't go on.
type Refusal struct {
	At      time.Time // when opencode printed it, in local time
	Session string
	Words   string // of the provider
}

// OpenCodeRefusal reads a line of opencode's log. It reports false for a line about anything
// else, and for a request for a title, which no answer depends on.
func OpenCodeRefusal(line []byte) (Refusal, bool) {
	words := string(line)
	begins, answer, refused := openCodeLog.FindStringSubmatch(words), openCodeAnswer.FindStringSubmatch(words), refusedWords(words)
	if begins == nil || answer == nil || refused == "" {
		return Refusal{}, false
	}
	at, err := time.Parse(time.RFC3339, begins[1])
	return Refusal{at.Local(), answer[1], refused}, err == nil
}

// OpenCodePrinted returns when opencode printed an event; zero if the event doesn't say it.
func OpenCodePrinted(line []byte) time.Time {
	var e struct {
		Timestamp int64 `json:"timestamp"` // in milliseconds since 1970
	}
	if json.Unmarshal(line, &e, lenient) != nil || e.Timestamp <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(e.Timestamp)
}

// openCode reads a line of opencode's log, of which only the answers of the provider are shown.
func (r *Errors) openCode(words string) []Line {
	refused := refusedWords(words)
	if refused == "" {
		return nil
	}
	r.streams++
	return retry{why: "the provider did not answer: " + cut(refused), n: r.streams}.line()
}

// refusedWords returns the words of a provider in a line of opencode's log; "" for any other line.
func refusedWords(line string) string {
	if m := openCodeStream.FindStringSubmatch(line); m != nil {
		return strings.ReplaceAll(m[1], `\"`, `"`)
	}
	return ""
}
