package external

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/running/dial"
)

// Pauses between two looks for an answer, unless the service names one.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	shortest     = 50 * time.Millisecond // also if the service names a shorter one
)

// maxFailed is how often in a row a service may fail to say where its answer is.
const maxFailed = 10

// maxRedirects is how often a service may name another place for its answer.
const maxRedirects = 10

// accepted keeps the place where the answer will be, and waits for it.
func (h *host) accepted(ctx context.Context, w *watched, resp *http.Response) Result {
	at, err := h.locate(h.to, resp.Header)
	if err != nil {
		r := refuse(envelope.AgentProtocol, "the service answered 202: %v", err)
		r.open = true
		return r
	}
	h.progress(w.text(resp.Body))
	point("accepted")
	h.record.Location = at.String()
	if err := h.record.write(h.Dir); err != nil {
		_, _ = fmt.Fprintln(h.Stderr, err) // this host knows the place all the same
	}
	point("located")
	if !pause(ctx, pauseOr(retryAfter(resp.Header), firstPause)) {
		return h.later(envelope.Cancelled, "the run was ended before the service had an answer")
	}
	return h.poll(ctx)
}

// locate returns the address of the answer, which has to be at the host of the service.
func (h *host) locate(from *url.URL, header http.Header) (*url.URL, error) {
	text := header.Get("Location")
	at, err := from.Parse(text)
	switch {
	case text == "":
		return nil, fmt.Errorf("it has no Location, so where its answer will be is unknown")
	case err != nil || at.User != nil:
		return nil, fmt.Errorf("its Location %s can't be used", short(text))
	case !dial.SameOrigin(h.to, at):
		return nil, fmt.Errorf("its Location %s is at another host; that is refused", short(text))
	}
	return at, nil
}

// poll looks for the answer at the place that the service named, until it is there.
func (h *host) poll(ctx context.Context) Result {
	at, err := url.Parse(h.record.Location)
	if err != nil || !dial.SameOrigin(h.to, at) {
		return h.lost(fmt.Sprintf("the answer is at %s, and the agent has another address now, %s", h.record.Location, h.Service.URL))
	}
	wait := firstPause
	for failed, moved := 0, 0; ; {
		step := h.look(ctx, at)
		switch {
		case step.location != nil && moved < maxRedirects:
			moved, at = moved+1, step.location
			continue
		case step.location != nil:
			return h.later(envelope.AgentProtocol, "the service names another place for its answer again and again")
		case step.done:
			return step.result
		case step.failed:
			failed++
		default:
			failed = 0
		}
		if failed == maxFailed {
			step.result.Again, step.result.open = true, true
			return step.result
		}
		if !pause(ctx, pauseOr(step.after, wait)) {
			return h.later(envelope.Cancelled, "the run was ended before the service had an answer")
		}
		wait = min(2*wait, longestPause)
	}
}

// A look is what came of one question for the answer.
type look struct {
	done     bool
	result   Result
	failed   bool          // the service could not say
	after    time.Duration // when it wants to be asked again; 0: it doesn't say
	location *url.URL      // where it wants to be asked; nil: there
}

// look asks once for the answer.
func (h *host) look(ctx context.Context, at *url.URL) look {
	w := watch(ctx, time.Duration(h.Service.HeaderTimeout))
	defer w.stop()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return look{done: true, result: h.later(envelope.InternalError, err.Error())}
	}
	point("polled")
	resp, err := h.do(req)
	if err != nil {
		return h.unseen(ctx, w, err)
	}
	defer resp.Body.Close()
	w.next(time.Duration(h.Service.IdleTimeout))
	after := retryAfter(resp.Header)
	switch status := resp.StatusCode; {
	case status == http.StatusOK:
		r := h.read(w, resp)
		return look{done: !r.open, failed: r.open, result: r}
	case status == http.StatusAccepted:
		h.progress(w.text(resp.Body))
		return look{after: after}
	case status >= 300 && status < 400:
		location, err := h.locate(at, resp.Header)
		if err != nil {
			return look{done: true, result: h.later(envelope.PolicyViolation, fmt.Sprintf("the service answered %d: %v", status, err))}
		}
		return look{location: location}
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusTooManyRequests:
		r := h.refused(status, resp.Header, w.excerpt(resp.Body))
		r.open = true // the answer stays where it is
		return look{done: true, result: r}
	case status >= 500, status == http.StatusRequestTimeout:
		return look{failed: true, after: after, result: h.refusedLook(w, resp)}
	}
	return look{done: true, result: h.refusedLook(w, resp)}
}

// refusedLook returns the result of a question that the service answered with a status alone.
func (h *host) refusedLook(w *watched, resp *http.Response) Result {
	return refuse(envelope.AgentError, "the service answered %s when asked for its answer%s", resp.Status, w.excerpt(resp.Body))
}

// unseen returns what came of a question that got no answer.
func (h *host) unseen(ctx context.Context, w *watched, err error) look {
	kind, words := w.why(err)
	r := h.later(kind, "the service can't be asked for its answer: "+words)
	return look{done: ctx.Err() != nil || kind == envelope.PolicyViolation || kind == envelope.AgentProtocol, failed: true, result: r}
}

// pauseOr returns the pause that a service names, or else the other one.
func pauseOr(named, otherwise time.Duration) time.Duration {
	if named > 0 {
		return min(max(named, shortest), longestRetry)
	}
	return otherwise
}

// pause waits, and reports whether the run goes on.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
