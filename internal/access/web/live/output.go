package live

import (
	"strings"
	"unicode/utf8"

	"mailboxd/internal/access/web/agenttext"
	"mailboxd/internal/cli/term"
)

// mostOutput limits what is kept of an output until it is sent: a browser shows no more.
const mostOutput = 64 << 10

// An Output is what a run writes. It goes to its stream.
type Output struct {
	stream *Stream
	part   part // the next one; the stream's mu guards it
	fresh  bool // part has something
}

// A part is what is new of an output.
type part struct {
	ID   string `json:"id"`            // of the task
	Anew bool   `json:"anew,omitzero"` // nothing comes before it
	Text string `json:"text,omitzero"`
	End  bool   `json:"end,omitzero"` // nothing comes after it
}

// Output adds the output of a task to a stream, from its beginning.
func (s *Stream) Output(id string) *Output {
	o := &Output{stream: s, part: part{ID: id, Anew: true}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outputs = append(s.outputs, o)
	return o
}

// Write adds text. Of more than a browser shows, the first part is left out.
func (o *Output) Write(text []byte) (int, error) {
	o.stream.mu.Lock()
	all := o.part.Text + term.Escape(agenttext.LineEnds.Replace(strings.ToValidUTF8(string(text), "\uFFFD")))
	if cut := len(all) - mostOutput; cut > 0 {
		for !utf8.RuneStart(all[cut]) {
			cut++
		}
		all = all[cut:]
	}
	o.part.Text, o.fresh = all, true
	o.stream.mu.Unlock()
	o.stream.change()
	return len(text), nil
}

// End says that nothing comes any more.
func (o *Output) End() {
	o.stream.mu.Lock()
	o.part.End, o.fresh = true, true
	o.stream.mu.Unlock()
	o.stream.change()
}

// take returns what is new. The caller holds mu of the stream.
func (o *Output) take() (part, bool) {
	now, fresh := o.part, o.fresh
	if fresh {
		o.part, o.fresh = part{ID: now.ID}, false
	}
	return now, fresh
}
