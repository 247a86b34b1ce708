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

// judging has the routes that judge requests to the page and to the gateway.
type judging struct{ *Server }

// judgePage judges a request to the page of mailboxd web. A process of a run may not use the
// page, whatever cookie it has. A refusal is an event, unless the page
// has recorded many already.
func (j judging) judgePage(r *http.Request) (any, error) {
	var asked client.PageRequest
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	if err := j.mayServe(r, "page"); err != nil {
		return nil, err
	}
	if asked.Protocol < client.PageProtocol {
		return client.PageVerdict{Refused: "this page was begun by an older mailboxd, whose sessions have ended; start mailboxd web again"}, nil
	}
	caller, why := peerOfPID(asked.PID), asked.Refused
	defer caller.process.Close() // nil is allowed
	if why == "" {
		why = j.partOfRun(caller)
	}
	if why == "" || asked.Quiet {
		return client.PageVerdict{Refused: why}, nil
	}
	return client.PageVerdict{Refused: why}, j.record(r, "page", caller.described(), asked.Request, why)
}

// judgeGateway judges a request to mailboxd gateway, as judgePage does. A process of a run of another
// mailbox may ask: it has the token of a sender, which the gateway compares.
func (j judging) judgeGateway(r *http.Request) (any, error) {
	var asked client.GatewayRequest
	if err := read(r, &asked); err != nil {
		return nil, err
	}
	if err := j.mayServe(r, "gateway"); err != nil {
		return nil, err
	}
	caller, why := peerOfPID(asked.PID), asked.Refused
	defer caller.process.Close() // nil is allowed
	if why == "" {
		why = partOf(caller, j.opts.OwnRunOf)
	}
	if why == "" || asked.Quiet {
		return client.PageVerdict{Refused: why}, nil
	}
	by := caller.described()
	if asked.From != "" {
		by = asked.From
	}
	if asked.Sender != "" {
		by = "sender " + asked.Sender + ", " + by
	}
	return client.PageVerdict{Refused: why}, j.record(r, "gateway", by, asked.Request, why)
}

// mayServe refuses a process that says that it serves the page or the gateway, and may not.
func (j judging) mayServe(r *http.Request, what string) error {
	p := peerIn(r.Context())
	if p.uid != os.Geteuid() {
		return forbidden("%s may not serve the %s", p.name(), what)
	}
	if why := j.partOfRun(p); why != "" {
		return forbidden("%s may not serve the %s: %s", p, what, why)
	}
	return nil
}

// peerOfPID returns the process with a number, which keeps it from now on; 0 is an unknown one.
func peerOfPID(pid int) peer {
	p := peer{pid: pid}
	if pid > 0 {
		if pidfd, err := unix.PidfdOpen(pid, 0); err == nil {
			p.process = os.NewFile(uintptr(pidfd), "pidfd")
		}
	}
	return p
}

// described names the process for records.
func (p peer) described() string {
	if p.pid > 0 {
		return p.String()
	}
	return "an unknown process"
}

// recordRefusal records that a request to the page or to the gateway is refused.
func (j judging) record(r *http.Request, verb, by, request, why string) error {
	words, reason := redacted(request), redacted(why)
	words = strings.ToValidUTF8(words[:min(len(words), maxRequest)], "?")
	j.opts.Log.Warn().Str("request", words).Str("by", by).Str("reason", reason).Msg("request to the " + verb + " refused")
	return j.engine.RefuseControl(context.WithoutCancel(r.Context()), verb, "", by, words+": "+reason)
}
