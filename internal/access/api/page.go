package api

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"mailboxd/internal/access/client"
)

// maxRequest limits what is recorded of a request, in bytes.
const maxRequest = 200

// secret matches 256 random bits in links, cookies and forms of the page.
var secret = regexp.MustCompile(`[A-Za-z0-9_-]{43,}`)

// redacted returns a text without possible secrets of the page.
func redacted(text string) string { return secret.ReplaceAllString(text, "(redacted)") }

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
	if asked.Protocol < client.PageProtocol {
		return client.PageVerdict{Refused: "this page was begun by an older mailboxd, whose sessions have ended; start mailboxd web again"}, nil
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
	words, reason := redacted(asked.Request), redacted(why)
	words = strings.ToValidUTF8(words[:min(len(words), maxRequest)], "?")
	d.opts.Log.Warn().Str("request", words).Str("by", by).Str("reason", reason).Msg("request to the page refused")
	err := d.engine.RefuseControl(context.WithoutCancel(r.Context()), "page", "", by, words+": "+reason)
	return client.PageVerdict{Refused: why}, err
}
