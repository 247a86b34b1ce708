package external

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/running/dial"
)

// maxAnswer limits what is read of a service, in bytes.
const maxAnswer = 64 << 20

var errTooLarge = fmt.Errorf("the answer is larger than %d bytes", maxAnswer)

// A watched is a request that ends when nothing comes for too long.
type watched struct {
	ctx   context.Context
	end   context.CancelCauseFunc
	timer *time.Timer
	limit time.Duration // between two parts of the answer; 0: none
	count int64         // bytes that were read
}

// An overdueError says for what a service took too long.
type overdueError struct {
	what  string
	limit time.Duration
}

func (e *overdueError) Error() string { return fmt.Sprintf("%s within %v", e.what, e.limit) }

// watch returns a request that has to have its header in time; 0: there is no limit.
func watch(ctx context.Context, header time.Duration) *watched {
	w := &watched{}
	w.ctx, w.end = context.WithCancelCause(ctx)
	w.restart(header, "the service did not begin to answer")
	return w
}

func (w *watched) restart(limit time.Duration, what string) {
	if w.timer != nil {
		w.timer.Stop()
	}
	if limit > 0 {
		w.timer = time.AfterFunc(limit, func() { w.end(&overdueError{what, limit}) })
	}
}

// next limits the time between two parts of the answer.
func (w *watched) next(idle time.Duration) {
	w.limit = idle
	w.restart(idle, "the service sent nothing more")
}

func (w *watched) stop() {
	w.restart(0, "")
	w.end(nil)
}

// cause returns why a request ended, instead of that its context did.
func (w *watched) cause(err error) error {
	if why := context.Cause(w.ctx); why != nil {
		return why
	}
	return err
}

// reader returns the answer, as far as it comes in time and isn't too large.
func (w *watched) reader(body io.Reader) io.Reader { return &answerReader{w, body} }

type answerReader struct {
	*watched
	body io.Reader
}

func (r *answerReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if r.count += int64(n); r.count > maxAnswer {
		return 0, errTooLarge
	}
	if n > 0 {
		r.next(r.limit)
	}
	return n, err
}

// maxWords limits what is quoted of a service, in bytes.
const maxWords = 500

// excerpt quotes the beginning of what a service says of a failure; "" for nothing.
func (w *watched) excerpt(body io.Reader) string {
	text, _ := io.ReadAll(io.LimitReader(w.reader(body), maxWords)) // what can't be read isn't quoted
	if len(text) == 0 {
		return ""
	}
	return ": " + strconv.Quote(string(text))
}

// short shortens and quotes a word of a service.
func short(text string) string {
	return strconv.Quote(text[:min(len(text), maxWords)])
}

// why returns the kind and the words of what ended a request.
func (w *watched) why(err error) (envelope.Kind, string) {
	if cause := context.Cause(w.ctx); cause != nil && w.ctx.Err() != nil {
		if overdue, ok := errors.AsType[*overdueError](cause); ok {
			return envelope.IdleTimeout, overdue.Error()
		}
		return envelope.Cancelled, "the run was ended before the service answered"
	}
	return whyOf(err)
}

// whyOf returns the kind and the words of an error.
func whyOf(err error) (envelope.Kind, string) {
	if overdue, ok := errors.AsType[*overdueError](err); ok {
		return envelope.IdleTimeout, overdue.Error()
	}
	if blocked, ok := errors.AsType[*dial.BlockedError](err); ok {
		return envelope.PolicyViolation, blocked.Error()
	}
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return envelope.AgentProtocol, "its certificate is refused: " + bad.Err.Error()
	}
	if errors.Is(err, errTooLarge) {
		return envelope.OutputTooLarge, err.Error()
	}
	return envelope.AgentError, err.Error()
}

// text returns the beginning of a short answer.
func (w *watched) text(body io.Reader) []byte {
	text, _ := io.ReadAll(io.LimitReader(w.reader(body), maxNote)) // what can't be read isn't shown
	return text
}

// maxNote limits what a service says of its progress at once, in bytes.
const maxNote = 64 << 10
