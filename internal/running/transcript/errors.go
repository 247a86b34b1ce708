package transcript

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Errors reads what the programs of agents print on standard error, a line at a time: what
// Gemini CLI and opencode say when they try their provider again. The zero value is ready. Any
// other line is Raw.
type Errors struct {
	attempt int  // of a provider that limits requests, whose pause is on the next line
	stack   bool // the next lines may be the stack of an error
	object  bool // the next lines are the members of an error
	streams int  // how often opencode's provider did not answer
}

var (
	// What packages/core/src/utils/retry.ts of Gemini CLI prints, version 0.61.0.
	geminiAttempt = regexp.MustCompile(`^Attempt (\d+) failed(?: with status (\d+))?\. Retrying with backoff\.\.\.`)
	geminiLimited = regexp.MustCompile(`^Attempt (\d+) failed: `)
	geminiPause   = regexp.MustCompile(`Retrying after (\d+)ms\.\.\.$`)
	geminiFailure = regexp.MustCompile(`^Error when talking to Gemini API |^Error generating content via API\. |^\[Routing\] `)
)

// beginnings are those of the lines that Errors doesn't pass on as they are.
var beginnings = []string{
	"Attempt ", "Suggested retry after ", "Error when talking to Gemini API ", "Error generating content via API. ", "[Routing] ", "timestamp=",
}

// MayBegin reports whether a line with such a beginning may be one that Read changes.
func (r *Errors) MayBegin(part []byte) bool {
	if r.stack || r.object || r.attempt > 0 {
		return true
	}
	for _, beginning := range beginnings {
		n := min(len(beginning), len(part))
		if string(part[:n]) == beginning[:n] {
			return true
		}
	}
	return false
}

// Read returns the parts of a transcript for one line, without its line break.
func (r *Errors) Read(line []byte) []Line {
	words := string(line)
	if r.inStack(words) {
		return nil
	}
	if r.attempt > 0 {
		n := r.attempt
		r.attempt = 0
		return retry{why: unserved(429), n: n, in: pauseOf(words)}.line()
	}
	if m := geminiAttempt.FindStringSubmatch(words); m != nil {
		r.stack = true
		n, _ := strconv.Atoi(m[1])
		status, _ := strconv.Atoi(m[2]) // "": no answer
		return retry{why: unserved(status), n: n}.line()
	}
	if m := geminiLimited.FindStringSubmatch(words); m != nil {
		n, _ := strconv.Atoi(m[1])
		if pause := pauseOf(words); pause > 0 {
			return retry{why: unserved(429), n: n, in: pause}.line()
		}
		r.attempt = n
		return nil
	}
	if openCodeLog.MatchString(words) {
		return r.openCode(words)
	}
	r.stack = geminiFailure.MatchString(words) || r.stack && strings.HasPrefix(words, "Suggested retry after ") // of its message
	if r.stack {
		words = Plain(words)
	}
	return []Line{{Raw, words}}
}

// inStack reports whether a line is of the stack or the members of an error.
func (r *Errors) inStack(words string) bool {
	switch {
	case r.object:
		r.object = words != "}"
		return true
	case r.stack && strings.HasPrefix(words, "    at "):
		r.object = strings.HasSuffix(words, " {")
		return true
	}
	return false
}

func pauseOf(words string) time.Duration {
	m := geminiPause.FindStringSubmatch(words)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(m[1], 10, 32)
	return time.Duration(n) * time.Millisecond
}

// Latest returns the last part of an output that says what its program does, on one line. The
// head is the beginning of the output, and tail is its end, which may overlap. It reports
// false if the output is not that of a known program; "" if nothing was said yet.
func Latest(head, tail []byte) (words string, known bool) {
	var r Reader
	for line := range strings.Lines(string(head)) {
		if strings.HasSuffix(line, "\n") && r.session.Program == "" {
			r.Read([]byte(strings.TrimSuffix(line, "\n")))
		}
	}
	if r.session.Program == "" {
		return "", false
	}
	for line := range strings.Lines(string(tail)) {
		if !strings.HasSuffix(line, "\n") {
			break // its end isn't there yet
		}
		words = lastOf(words, r.Read([]byte(strings.TrimSuffix(line, "\n"))))
	}
	return lastOf(words, r.Rest()), true
}

// LatestError is Latest for the end of a standard error: its last sentence about a provider that
// is tried again; "" for none.
func LatestError(tail []byte) (words string) {
	var r Errors
	for line := range strings.Lines(string(tail)) {
		words = lastOf(words, r.Read([]byte(strings.TrimSuffix(line, "\n"))))
	}
	return words
}

func lastOf(words string, lines []Line) string {
	for _, l := range lines {
		if said := lastLine(l.Text); l.Kind != Raw && l.Kind != End && said != "" {
			words = said
		}
	}
	return words
}
