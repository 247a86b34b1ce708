// Package external is the host of an agent that is no program: an HTTP service, an agent of A2A, or a
// tool of an MCP server. The host is the command of a run. It sends the request once, waits for the answer, and
// prints it.
//
// What it sends is durable in the run directory before, so that the host of another attempt knows
// what it may do. It asks again where the service said that its answer will be. It sends the request
// again, with the same key, only if the agent is idempotent. Otherwise the answer is lost.
package external

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/dial"
	"mailboxd/internal/testtools/fault"
)

// point marks a step after which a test kills the host.
var point = fault.Point

// A host asks one service for one run.
type host struct {
	Options
	record Record
	client *http.Client
	to     *url.URL
}

// Run asks the service of a run, and prints its answer, or why there is none. The error is about
// the printing.
func Run(ctx context.Context, o Options) error {
	h := &host{Options: o}
	return h.print(h.ask(ctx))
}

// ask asks the service, as far as an earlier host has not done so.
func (h *host) ask(ctx context.Context) Result {
	known, err := h.open()
	if err != nil {
		return refuse(envelope.InternalError, "%v", err)
	}
	if h.Service.BearerEnv != "" && h.Bearer == "" {
		r := refuse(envelope.AgentError, "the variable %s with the token of the service isn't set where mailboxd serves", h.Service.BearerEnv)
		r.Status, r.open = http.StatusUnauthorized, true
		return r
	}
	switch {
	case h.record.Location != "":
		return h.poll(ctx)
	case h.record.Task != "":
		return h.converse(ctx)
	case known && !h.Service.Idempotent:
		return h.lost("an earlier run ended before it had the answer")
	case h.Service.Server != "":
		return h.callTool(ctx)
	case h.Service.Mode == task.ServiceA2A:
		return h.converse(ctx)
	}
	h.record.To, h.record.Sent = h.Service.URL, time.Now()
	if err := h.record.write(h.Dir); err != nil {
		h.record.Sent = time.Time{}
		r := refuse(envelope.InternalError, "nothing was sent: %v", err)
		r.Again = true
		return r
	}
	point("recorded")
	return h.post(ctx)
}

// open reads the record and the address. It reports whether something may have been sent.
func (h *host) open() (known bool, err error) {
	if h.record, known, err = ReadRecord(h.Dir); err != nil {
		return false, err
	}
	if !known {
		h.record.Key = h.RunID
	}
	return known, h.address()
}

// address reads the address, unless the service is a child of the host.
func (h *host) address() (err error) {
	if len(h.Service.Command) > 0 {
		return nil
	}
	if err := dial.CheckURL(h.Service.URL); err != nil {
		return fmt.Errorf("url: %s %w", h.Service.URL, err)
	}
	h.to, err = url.Parse(h.Service.URL)
	if err == nil {
		h.client = dial.Client(h.Resolver, h.Roots, h.to.Scheme == "http")
	}
	return err
}

// lost returns the result of a request whose answer will never be known.
func (h *host) lost(why string) Result {
	r := refuse(envelope.RunLost, "%s; %s", why, h.record.Unknown())
	r.open = true
	return r
}

// Unknown says what isn't known of a request that was sent, and what to do.
func (r Record) Unknown() string {
	return fmt.Sprintf("the request was sent to %s at %s, so whether the work was done is unknown; "+
		"it isn't sent again, since the agent isn't idempotent", r.To, r.Sent.UTC().Format(time.RFC3339))
}

// post sends the request, and reads what the service answers.
func (h *host) post(ctx context.Context) Result {
	w := watch(ctx, time.Duration(h.Service.HeaderTimeout))
	defer w.stop()
	sent := false
	traced := httptrace.WithClientTrace(w.ctx, &httptrace.ClientTrace{
		GotConn:      func(httptrace.GotConnInfo) { sent = true },
		WroteRequest: func(httptrace.WroteRequestInfo) { point("sent") },
	})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, h.to.String(), bytes.NewReader(h.Request))
	if err != nil {
		return refuse(envelope.InternalError, "%v", err)
	}
	req.GetBody = nil // package http would send a request again that has its body and a key
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", h.record.Key)
	resp, err := h.do(req)
	if err != nil {
		return h.broken(w, err, sent)
	}
	defer resp.Body.Close()
	w.next(time.Duration(h.Service.IdleTimeout))
	switch {
	case resp.StatusCode == http.StatusAccepted && h.Service.Mode == task.ServicePoll:
		return h.accepted(ctx, w, resp)
	case resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusCreated:
		return h.read(w, resp)
	}
	return h.refused(resp.StatusCode, resp.Header, w.excerpt(resp.Body))
}

// do sends a request with the token.
func (h *host) do(req *http.Request) (*http.Response, error) {
	accept := "application/json"
	if h.Service.Mode == task.ServiceStream {
		accept = "text/event-stream, application/json"
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", "mailboxd")
	if h.Bearer != "" {
		req.Header.Set("Authorization", "Bearer "+h.Bearer)
	}
	return h.client.Do(req)
}

// broken returns the result of a request that got no whole answer.
func (h *host) broken(w *watched, err error, sent bool) Result {
	kind, words := w.why(err)
	return h.unanswered(kind, words, sent)
}

// unanswered returns the result of a request that may have been sent, and why it got no answer.
func (h *host) unanswered(kind envelope.Kind, words string, sent bool) Result {
	if !sent {
		r := refuse(kind, "the service can't be reached: %s", words)
		r.Again = kind == envelope.AgentError
		return r
	}
	switch {
	case kind == envelope.OutputTooLarge:
		return refuse(kind, "%s", words)
	case h.record.Placed() != "":
		r := h.later(kind, words)
		r.Again = true
		return r
	case !h.Service.Idempotent:
		r := h.lost(words)
		if kind != envelope.AgentError {
			r.Kind = kind
		}
		return r
	}
	r := h.later(kind, words)
	r.Again = true
	return r
}

// later returns the result of a host that asks no longer. Another one may.
func (h *host) later(kind envelope.Kind, words string) Result {
	r := refuse(kind, "%s", words)
	r.open = true
	return r
}

// refused returns the result of a request that the service refused with a status.
func (h *host) refused(status int, header http.Header, words string) Result {
	r := refuse(envelope.AgentError, "the service answered %d %s%s", status, http.StatusText(status), words)
	r.Status, r.RetryAfter = status, int64(retryAfter(header).Seconds())
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
	case http.StatusBadGateway, http.StatusGatewayTimeout: // of a proxy, which doesn't know what the service did
		if !h.Service.Idempotent {
			return h.lost(r.Message)
		}
		r.Again, r.open = true, true
	case http.StatusConflict: // an earlier request with the key is at work
		r.open = h.record.Key != h.RunID
		r.Again = r.open
	case http.StatusAccepted:
		r.Kind, r.open = envelope.AgentProtocol, true
		r.Message = "the service answered 202, so its answer comes later; set http.mode: poll"
	default:
		r.Again = status >= 500 && h.Service.Idempotent
		if to := header.Get("Location"); status >= 300 && status < 400 {
			r.Kind = envelope.AgentProtocol
			r.Message = fmt.Sprintf("the service answered %d and redirects to %s; no redirect is followed: "+
				"write the final address as its url", status, short(to))
			if at, err := h.to.Parse(to); err != nil || !dial.SameOrigin(h.to, at) {
				r.Kind = envelope.PolicyViolation
				r.Message = fmt.Sprintf("the service answered %d and redirects to another host, %s; that is refused", status, short(to))
			}
		}
	}
	return r
}
