package api

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
)

// admit lets in the user whose daemon this is, and users who may approve. At the approvers'
// socket it lets in approvers alone.
func (d *Server) admit(p peer) error {
	if p.uid == os.Geteuid() && !p.ofGroup || len(d.opts.Approvers(p.uid)) > 0 {
		return nil
	}
	return forbidden("%s may not use this mailbox", p.name())
}

// maySteer refuses changes by agents and by other users. It records each refusal.
func (d *Server) maySteer(r *http.Request, verb string, id envelope.ID) error {
	p := peerIn(r.Context())
	why := d.partOfRun(p)
	if why == "" && p.uid != os.Geteuid() {
		why = "another user may approve, and nothing else"
	}
	if why == "" {
		return nil
	}
	return d.refuse(r, verb, id, why)
}

// refuse records that the caller may not do something, and returns the error of it.
func (d *Server) refuse(r *http.Request, verb string, id envelope.ID, why string) error {
	p := peerIn(r.Context())
	d.opts.Log.Warn().Str("verb", verb).Str("task_id", string(id)).Stringer("by", p).Str("reason", why).Msg("request refused")
	ctx := context.WithoutCancel(r.Context()) // a closed connection doesn't prevent the record
	if err := d.engine.RefuseControl(ctx, verb, id, p.String(), why); err != nil {
		return err
	}
	return forbidden("%s may not %s: %s", p, verb, why)
}

// partOfRun says why a peer is part of a run, or "". A peer that has ended counts as part of one.
func (d *Server) partOfRun(p peer) string { return partOf(p, d.opts.RunOf) }

func partOf(p peer, runOf func(pid int) (why string, err error)) string {
	why, err := runOf(p.pid)
	switch {
	case err != nil:
		return "it cannot be told from an agent: " + err.Error()
	case why != "":
		return why
	case !p.alive(): // after looking: its number was its own all the time
		return "it cannot be told from an agent: it is gone"
	}
	return ""
}

func forbidden(format string, args ...any) error {
	return &client.Error{Kind: client.Forbidden, Message: fmt.Sprintf(format, args...)}
}
