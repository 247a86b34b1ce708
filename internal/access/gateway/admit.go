package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"mailboxd/internal/access/client"
	"mailboxd/internal/access/web/access"
)

// maxBody limits the body of a request, in bytes.
const maxBody = 1 << 20

// A call is a request of a sender that logged in.
type call struct {
	sender  Sender
	request *http.Request
}

type callKey struct{}

type farKey struct{}

// connContext gives the requests of a connection its addresses; judge gets the address of another machine.
func connContext(ctx context.Context, conn net.Conn) context.Context {
	ctx = access.ConnContext(ctx, conn)
	if access.IsLocal(ctx) {
		return ctx
	}
	return context.WithValue(ctx, farKey{}, conn.RemoteAddr().String())
}

// admit returns a handler that lets only requests of senders through to another one. Each refusal of a
// caller is an event; a flood and a body that is too large are none, so that they can't fill the ledger.
func (s *server) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		sender, why := s.examine(r)
		if why == nil {
			why = s.quotas.take(sender.Name)
		}
		if why != nil {
			refuse(w, r, *why)
			return
		}
		defer s.quotas.release(sender.Name)
		if why := readBody(r); why != nil {
			refuse(w, r, *why)
			return
		}
		ctx := context.WithValue(r.Context(), callKey{}, call{sender, r})
		next.ServeHTTP(&timedWriter{w, http.NewResponseController(w)}, r.WithContext(ctx))
	})
}

// examine returns the sender of a request, or why it is refused.
func (s *server) examine(r *http.Request) (Sender, *refusal) {
	if !slices.Contains(s.hosts, strings.ToLower(r.Host)) {
		return Sender{}, new(forbidden.with(s.callers.Report(r, fmt.Sprintf("its host is %q", r.Host))))
	}
	if access.IsLocal(r.Context()) {
		why, err := s.callers.Check(r)
		switch {
		case err != nil:
			s.opts.Log.Warn().Err(err).Msg("caller not judged")
			return Sender{}, &down
		case why != "":
			return Sender{}, new(forbidden.with(why))
		}
	}
	token, given := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !given || token == "" {
		s.callers.Report(r, "it has no token")
		return Sender{}, &noLogin
	}
	senders, err := s.opts.Senders()
	if err != nil {
		s.opts.Log.Error().Err(err).Msg("configuration can't be read")
		return Sender{}, &down
	}
	sender, found := senderOf(token, senders)
	if !found {
		s.callers.Report(r, "its token is not one of a sender")
		return Sender{}, &noLogin
	}
	return sender, nil
}

// senderOf returns the sender with a token. It compares the token with that of each sender, in constant time.
func senderOf(token string, senders []Sender) (found Sender, ok bool) {
	digest := sha256.Sum256([]byte(token))
	for _, one := range senders {
		if subtle.ConstantTimeCompare(digest[:], one.Digest[:]) == 1 {
			found, ok = one, true
		}
	}
	return found, ok
}

// judge asks the daemon about a process that connected, or has it record a refusal.
func (s *server) judge(ctx context.Context, pid int, request, refused string, quiet bool) (why string, err error) {
	asked := client.GatewayRequest{PID: pid, Request: request, Refused: refused, Quiet: quiet}
	if c, ok := ctx.Value(callKey{}).(call); ok {
		asked.Sender = c.sender.Name
	}
	asked.From, _ = ctx.Value(farKey{}).(string)
	err = s.daemon.use(ctx, func(d daemon) error {
		v, err := d.JudgeGateway(ctx, asked)
		why = v.Refused
		return err
	})
	return why, err
}

// readBody reads the body of a request, so that no method sees one that is too large.
func readBody(r *http.Request) *refusal {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return &unread
	case len(body) > maxBody:
		return &tooLarge
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// A timedWriter ends the answer to a client that doesn't read it.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// slowest is how long one write to a client may take.
const slowest = 10 * time.Second

// Write writes a part of the answer.
func (w *timedWriter) Write(text []byte) (int, error) {
	if err := w.control.SetWriteDeadline(time.Now().Add(slowest)); err != nil {
		return 0, err
	}
	return w.ResponseWriter.Write(text)
}

// Flush sends what was written.
func (w *timedWriter) Flush() { _ = w.control.Flush() } // the next write fails as well
