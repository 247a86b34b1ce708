// Package access lets one person's browser use the page of mailboxd web, and nobody else: it
// opens a loopback port, prints a link that works once, and refuses every request whose host,
// process, origin or form is not as it has to be. Each refusal is reported.
package access

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Options configure a Guard.
type Options struct {
	Name string // of the mailbox, for the host name

	Judge Judge
	Down  func(w http.ResponseWriter, r *http.Request, err error) // says that no process can be judged

	Public []string // paths that need no session, as they tell nothing

	// Refuse shows why a request is refused.
	Refuse func(w http.ResponseWriter, r *http.Request, why string)
	Login  http.HandlerFunc // asks for the link, without a session
}

// A Guard is the way to the page. Open makes it.
type Guard struct {
	opts     Options
	listener *net.TCPListener
	host     string
	links    links
	sessions sessions
	origins  *http.CrossOriginProtection
	callers  Callers
}

// Open opens a port of the loopback interface, which the system chooses.
func Open(ctx context.Context, opts Options) (*Guard, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a port for the page: %w", err)
	}
	g := &Guard{opts: opts, listener: l.(*net.TCPListener), origins: http.NewCrossOriginProtection()}
	g.callers.Judge = opts.Judge
	g.callers.Again = func(r *http.Request, _ time.Duration) bool { return r.Method == http.MethodPost }
	_, port, _ := net.SplitHostPort(l.Addr().String())
	g.host, g.sessions.port = HostOf(opts.Name)+":"+port, port
	return g, nil
}

// HostOf returns the host name of the page of a mailbox. It is not plain localhost: cookies
// ignore ports, so a cookie for localhost goes to every development server of the machine.
func HostOf(name string) string {
	label := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name), "-")
	const most = 63 - len("mbx-") // of a label, RFC 1035
	return "mbx-" + strings.TrimLeft(label[max(0, len(label)-most):], "-") + ".localhost"
}

// Link returns a link that opens the page once. The secret is in the fragment, which no browser
// sends to a server.
func (g *Guard) Link() string { return "http://" + g.host + "/#" + g.links.add(time.Now()) }

// Host returns the host and port of the page.
func (g *Guard) Host() string { return g.host }

// Listener returns the listener of the port.
func (g *Guard) Listener() net.Listener { return g.listener }

// policy is what a page may load and do. There is no script, style or image of anyone else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'"

// Wrap returns a handler that lets only requests of the person's browser through to another one.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		why, err := g.examine(r)
		if err != nil {
			if r.Method != http.MethodPost {
				w.Header().Set("Refresh", "2") // until a daemon can say who connected
			}
			g.opts.Down(w, r, err)
			return
		}
		if why != "" {
			g.opts.Refuse(w, r, why)
			return
		}
		session, known := g.sessions.find(r, time.Now())
		switch {
		case r.Method == http.MethodPost && r.URL.Path == "/session":
			g.begin(w, r)
		case slices.Contains(g.opts.Public, r.URL.Path) && r.Method != http.MethodPost:
			next.ServeHTTP(w, r)
		case !known && r.Method == http.MethodPost:
			g.opts.Refuse(w, r, g.callers.Report(r, "it has no session"))
		case !known:
			g.opts.Login(w, r)
		case r.Method == http.MethodPost && !session.owns(r.PostFormValue("token")):
			g.opts.Refuse(w, r, g.callers.Report(r, "its form is not one of the session"))
		default:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sessionKey{}, session)))
		}
	})
}

type sessionKey struct{}

// SessionOf returns the session of a request that Wrap let through.
func SessionOf(r *http.Request) Session {
	s, _ := r.Context().Value(sessionKey{}).(Session)
	return s
}

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// examine returns why a request is refused, whatever cookie it has; "" if it may go on.
func (g *Guard) examine(r *http.Request) (why string, err error) {
	if r.Host != g.host {
		return g.callers.Report(r, fmt.Sprintf("its host is %q", r.Host)), nil
	}
	if why, err := g.callers.Check(r); err != nil || why != "" {
		return why, err
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return "", nil
	case http.MethodPost:
	default:
		return g.callers.Report(r, "its method is "+r.Method), nil
	}
	if why := foreign(r, g.host); why != "" {
		return g.callers.Report(r, why), nil
	}
	if err := g.origins.Check(r); err != nil {
		return g.callers.Report(r, "it comes from another page: "+err.Error()), nil
	}
	r.Body = http.MaxBytesReader(nil, r.Body, 64<<10)
	return "", nil
}

// foreign says that a form comes from another page, by Sec-Fetch-Site or by Origin; "" if neither says so.
func foreign(r *http.Request, host string) string {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "same-origin" {
		return fmt.Sprintf("it comes from another page (Sec-Fetch-Site: %q)", site)
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+host {
		return fmt.Sprintf("it comes from another page (Origin: %q)", origin)
	}
	return ""
}

// begin exchanges the secret of a link for a cookie.
func (g *Guard) begin(w http.ResponseWriter, r *http.Request) {
	secret := strings.TrimSpace(r.PostFormValue("secret"))
	if _, fragment, isLink := strings.Cut(secret, "#"); isLink { // the person pasted the whole link
		secret = fragment
	}
	if err := g.links.take(secret, time.Now()); err != nil {
		g.opts.Refuse(w, r, g.callers.Report(r, err.Error()))
		return
	}
	http.SetCookie(w, g.sessions.begin(time.Now()))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
