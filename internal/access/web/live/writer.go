package live

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/access/web/agenttext"
	"mailboxd/internal/cli/term"
)

// A Writer sends text as server-sent events.
type Writer struct {
	mu      sync.Mutex // guards w
	w       http.ResponseWriter
	control *http.ResponseController
}

// Slowest is how long one write to a browser may take.
const Slowest = 10 * time.Second

// NewWriter begins a stream.
func NewWriter(w http.ResponseWriter) *Writer {
	w.Header().Set("Content-Type", "text/event-stream")
	return &Writer{w: w, control: http.NewResponseController(w)}
}

// Send sends events as they are.
func (e *Writer) Send(text string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.control.SetWriteDeadline(time.Now().Add(Slowest))
	if err == nil {
		_, err = io.WriteString(e.w, text)
	}
	return errors.Join(err, e.control.Flush())
}

// Write sends a part of an output.
func (e *Writer) Write(part []byte) (int, error) {
	text, err := json.Marshal(term.Escape(agenttext.LineEnds.Replace(strings.ToValidUTF8(string(part), "\uFFFD"))))
	if err != nil {
		return 0, err
	}
	return len(part), e.Send(fmt.Sprintf("data: %s\n\n", text))
}
