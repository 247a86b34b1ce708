package api

import (
	"context"
	"net/http"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"mailboxd/internal/client"
)

// judgePage judges a request to the page of mailboxd web. A process of a run may not use the
// page, whatever cookie it has. A refusal is an event, unless the page
// has recorded many already.
func (d *Server) judgePage(r *http.Request) (any, error) {
	var asked client.PageRequest
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	if p := peerIn(r.Context()); p.uid != os.Geteuid() {
		return nil, forbidden("%s may not serve the page", p.name())
	}
	if why := d.partOfRun(peerIn(r.Context())); why != "" {
		return nil, forbidden("%s may not serve the page: %s", peerIn(r.Context()), why)
	}
	caller, why := peer{pid: asked.PID}, asked.Refused
	if caller.pid > 0 {
		if pidfd, err := unix.PidfdOpen(caller.pid, 0); err == nil {
			caller.process = os.NewFile(uintptr(pidfd), "pidfd")
			defer caller.process.Close()
		}
	}
	if why == "" {
		why = d.partOfRun(caller)
	}
	if why == "" || asked.Quiet {
		return client.PageVerdict{Refused: why}, nil
	}
	by := "an unknown process"
	if caller.pid > 0 {
		by = caller.String()
	}
	words := strings.ToValidUTF8(asked.Request[:min(len(asked.Request), maxCommand)], "?")
	d.opts.Log.Warn().Str("request", words).Str("by", by).Str("reason", why).Msg("request to the page refused")
	err := d.engine.RefuseControl(context.WithoutCancel(r.Context()), "page", "", by, words+": "+why)
	return client.PageVerdict{Refused: why}, err
}
