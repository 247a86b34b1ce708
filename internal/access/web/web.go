// Package web serves the page of a mailbox to the browser of one person, for as long as
// mailboxd web runs at a terminal. It is a client of the control socket: it shows what the daemon
// knows, and asks the daemon for every change. It opens a loopback port; the daemon opens none.
package web

import (
	"context"
	"net/http"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"mailboxd/internal/access/client"
	"mailboxd/internal/access/web/access"
	"mailboxd/internal/access/web/live"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/mailbox"
)

// Options configure the page.
type Options struct {
	Location reader.Location
	Version  string // of this program
	Approve  bool   // decisions can be made on the page
	User     string // the sender of replies, as that of mailboxd reply

	StopsAgents bool // the daemon ends its agents when it ends (stop_agents_on_exit)

	// Run runs a command of mailboxd with a standard input, and returns what it prints: the page
	// sends tasks by the commands that people use.
	Run func(ctx context.Context, input string, args ...string) (string, error)

	// Agents describes the agents of the configuration.
	Agents func(context.Context) ([]view.Agent, error)

	// Terminal is the controlling terminal; nil opens it. Serve closes it.
	Terminal *Terminal
}

// Serve serves the page until ctx ends, or the terminal is gone. It returns nil then.
func Serve(ctx context.Context, opts Options) error {
	t := opts.Terminal
	if t == nil {
		var err error
		if t, err = OpenTerminal(); err != nil {
			return err
		}
	}
	defer t.Close()
	s, err := newServer(ctx, opts, t)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	work, ctx := errgroup.WithContext(ctx)
	server := access.NewServer(ctx, s.guard.Wrap(s.routes()), access.ConnContext, 10*time.Second)
	work.Go(func() error { return access.Serve(ctx, server, s.guard.Listener(), patience) })
	work.Go(func() error {
		defer stop() // the page ends with its terminal
		return t.Listen(ctx, s.printLink)
	})
	work.Go(func() error { s.decisions.serve(ctx, s.carryOut); return nil })
	t.Print("The page of " + term.OneLine(s.root) + "\r\n")
	s.printLink()
	return work.Wait()
}

// patience is how long requests may take once the page ends.
const patience = 200 * time.Millisecond

// A server answers the requests of the browser.
type server struct {
	opts      Options
	root      string // of the mailbox
	terminal  *Terminal
	guard     *access.Guard
	pages     *pages
	decisions decisions
	activity  activity
	streams   live.Streams
	choices   choices
	grants    access.Grants
}

func newServer(ctx context.Context, opts Options, t *Terminal) (*server, error) {
	r, _, err := opts.Location.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	s := &server{opts: opts, root: r.Root, terminal: t, decisions: decisions{begun: make(chan job, 1)}}
	if s.pages, err = newPages(); err != nil {
		return nil, err
	}
	slug, err := mailbox.Slug(r.Root)
	if err != nil {
		return nil, err
	}
	s.guard, err = access.Open(ctx, access.Options{Name: slug, Judge: s.judge, Down: s.failWith, Public: s.pages.paths(), Refuse: s.refuse, Login: s.login})
	return s, err
}

// judge asks the daemon about a process that connected.
func (s *server) judge(ctx context.Context, pid int, request, refused string, quiet bool) (string, error) {
	r, daemon, err := s.opts.Location.Connect(ctx)
	if err != nil {
		return "", err
	}
	defer r.Close()
	v, err := daemon.JudgePage(ctx, client.PageRequest{PID: pid, Request: request, Refused: refused, Quiet: quiet})
	return v.Refused, err
}

// printLink prints a new link.
func (s *server) printLink() {
	s.terminal.Print("\r\n  " + s.guard.Link() + "\r\n\r\nThe link works once, within two minutes. Enter prints a new one; Ctrl-C ends the page.\r\n")
}

// text refuses a path that is no text, which names nothing.
func text(next http.HandlerFunc, fail func(http.ResponseWriter, *http.Request, int, string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !utf8.ValidString(r.URL.Path) {
			fail(w, r, http.StatusNotFound, "There is no such page.")
			return
		}
		next(w, r)
	}
}

// routes are the pages, and what can be asked for on them.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	for path := range s.pages.assets {
		mux.HandleFunc("GET "+path, s.asset)
	}
	for path, v := range map[string]shown{
		"/{$}": {s.now, "now", "Now"}, "/tasks": {s.tasks, "tasks", "Tasks"}, "/agents": {s.agents, "agents", "Agents"},
		"/routing": {s.routing, "routing", "Routing"}, "/budgets": {s.budgets, "budgets", "Budgets"}, "/events": {s.events, "events", "Events"},
		"/tasks/{id}": {show: s.task}, "/runs/{id}": {show: s.run}, "/thread/{id}": {show: s.thread}, "/routing/{id}": {show: s.route},
		"/decisions/{id}": {show: s.decision}, "/passkey": {show: s.newPasskey}, "/send": {show: s.sendForm}, "/tasks/{id}/edit": {show: s.editForm},
	} {
		mux.HandleFunc("GET "+path, text(s.page(v), s.fail))
	}
	mux.HandleFunc("GET /live", s.streams.Limit(s.live))
	mux.HandleFunc("POST /tasks/{id}/{verb}", s.act)
	mux.HandleFunc("POST /agents/{verb}", s.steer)
	mux.HandleFunc("POST /decisions/{id}", s.prove)
	mux.HandleFunc("POST /passkey", s.addPasskey)
	mux.HandleFunc("POST /retry", s.retry)
	mux.HandleFunc("POST /send", s.sendTask)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, http.StatusNotFound, "There is no such page.")
	})
	return mux
}
