package runner

import (
	"io"
	"strings"
	"sync"
)

// maxTail is how much of its end a Tail keeps, in bytes.
const maxTail = 1 << 10

// A Tail passes on what a program writes to standard error, and keeps its end for a message.
type Tail struct {
	Also io.Writer // nil: none

	mu   sync.Mutex // guards what follows
	kept []byte
}

// Write never fails, so that the program goes on without its standard error.
func (t *Tail) Write(text []byte) (int, error) {
	if t.Also != nil {
		_, _ = t.Also.Write(text)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, text[max(0, len(text)-maxTail):]...)
	t.kept = append([]byte(nil), t.kept[max(0, len(t.kept)-maxTail):]...)
	return len(text), nil
}

// Text returns the end of what was written, without the spaces around it.
func (t *Tail) Text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.kept), ""))
}
