package api

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rs/zerolog"

	"mailboxd/dispatch"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/stores/ledger"
)

// A route is one kind of request. docs/api.md shows the table.
type route struct {
	method, path string
	about        string
	query        string // the parameters after the question mark
	body, answer any    // values of the types in the bodies; nil: no body, or no JSON
	do           func(*http.Request) (any, error)
}

// routes is the whole API.
func (d *Server) routes() []route {
	reading := d.records.routes()
	for i, r := range reading {
		switch r.path {
		case "/status":
			reading[i].do = d.status
		case "/runners":
			reading[i].do = runnerRoutes{d}.list
		case "/tasks/{id}", "/asked":
			reading[i].do = d.markingOwn(r.do)
		}
	}
	return slices.Concat(reading, []route{
		{"POST", "/page", "Judges a process that asks the page of `mailboxd web` for something, and records a refusal.", "",
			client.PageRequest{}, client.PageVerdict{}, judging{d}.judgePage},
		{"POST", "/gateway", "Judges a process that asks `mailboxd gateway` for something, and records a refusal.", "",
			client.GatewayRequest{}, client.PageVerdict{}, judging{d}.judgeGateway},
	}, d.routing(), d.controls(), d.workRoutes(), d.sendingRoutes(), d.decisions(), d.fetching(), runnerRoutes{d}.routes())
}

// routes is the part of the API that only reads the ledger.
func (b *Records) routes() []route {
	return []route{
		{"GET", "/status", "The daemon and its load.", "brief=1", nil, client.Status{}, b.status},
		{"GET", "/tasks", "Tasks, in the order of `seq`; at most 1000 at once.",
			"state, status, reason, word and label (may be repeated), agent, requester, type, kind, " +
				"since, after, order=newest, revisions=all, callback=failed, describe=1, limit", nil, client.Page{}, b.tasks},
		{"GET", "/count", "How many tasks there are.",
			"state, status, reason, word and label (may be repeated), agent, requester, type, kind, " +
				"since, revisions=all, callback=failed", nil, client.Count{}, b.count},
		{"GET", "/ids", "The ids that begin with a text, at most 8.", "prefix", nil, client.Names{}, b.ids},
		{"GET", "/tasks/{id}", "All that is known of a task.", "", nil, client.TaskDetails{}, b.taskDetails},
		{"GET", "/tasks/{id}/row", "The latest revision of a task.", "", nil, client.Task{}, b.row},
		{"GET", "/tasks/{id}/result", "The result file of a task, as it is.", "", nil, nil, b.result},
		{"GET", "/tasks/{id}/request", "The request of a revision of a task, as it came; of the latest one without a number.", "revision", nil, nil, b.requestOf},
		{"GET", "/tasks/{id}/below", "The open tasks below a task: the tasks that its runs asked for, the tasks below these, and so on.", "", nil, client.Page{}, b.below},
		{"GET", "/asked", "Tasks with their descriptions, and what people were asked about each; at most 100 at once. Unknown tasks are left out.",
			"task (may be repeated)", nil, client.AskedTasks{}, b.askedAbout},
		{"GET", "/files", "How far the task files were read.", "", nil, client.Cursors{}, b.files},
		{"GET", "/runners",
			"The runners, which are programs on other machines that run agents for the daemon; none without a daemon.",
			"", nil, client.Runners{}, func(*http.Request) (any, error) { return client.Runners{}, nil }},
		{"GET", "/accounts", "The budgets of a day of which something was reserved or spent.", "day", nil, client.Balances{}, b.accounts},
		{"GET", "/stats", "Sums over the tasks and runs that ended since a time, by day and agent, and the queues of now.", "since", nil, client.Stats{}, b.stats},
		{"GET", "/events/list", "Events, oldest first; at most 1000 at once.", "task, after, limit", nil, client.EventList{}, b.eventList},
		{"GET", "/thread", "A conversation: the one of that name, the one that a task is part of, or a trace.", "id", nil, client.Dialogue{}, b.thread},
		{"GET", "/trace", "A chain of work: the one of that name, or the one that a task or a conversation is part of.", "id", nil, client.Dialogue{}, b.trace},
		{"GET", "/clutch/replay", "What the ledger has of a run, as messages of Clutch. The run is named by its run_id or by one of its tasks.", "run_id", nil, client.Replay{}, b.replay},
	}
}

// Handler answers the requests that only read the ledger, without a daemon.
func (b *Records) Handler() http.Handler { return mux(b.routes(), zerolog.Nop()) }

// handler answers the requests at both sockets. The stream of events is the only
// route without one answer.
func (d *Server) handler() http.Handler {
	control, approvers := mux(d.routes(), d.opts.Log), mux(d.groupRoutes(), d.opts.Log)
	control.HandleFunc("GET "+client.Base+"/events", d.stream)
	control.HandleFunc("GET "+client.Base+"/clutch/events", d.clutchStream)
	control.HandleFunc("GET /metrics", d.serveMetrics)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.RLock()
		defer d.mu.RUnlock()
		if d.closed {
			return
		}
		p := peerIn(r.Context())
		if err := d.admit(p); err != nil {
			refuse(w, r, d.opts.Log, err)
			return
		}
		if p.ofGroup {
			approvers.ServeHTTP(w, r)
			return
		}
		control.ServeHTTP(w, r)
	})
}

// mux answers the requests of a table, and refuses others.
func mux(routes []route, log zerolog.Logger) *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.HandleFunc(r.method+" "+client.Base+r.path, r.answering(log))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, client.NoRoute, "there is no "+r.Method+" "+r.URL.Path+" at this socket")
	})
	return mux
}

// maxBody limits the body of a request. Only an answer is long: the same limit holds for agents
// that mailboxd runs.
const (
	maxBody   = 64 << 10
	maxAnswer = 4 << 20
)

func (r route) maxBody() int64 {
	if _, answer := r.body.(client.Submission); answer {
		return maxAnswer
	}
	return maxBody
}

// slow is how long one write to a client may take.
const slow = 10 * time.Second

func (route route) answering(log zerolog.Logger) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, route.maxBody())
		answer, err := route.do(r)
		if err != nil {
			refuse(w, r, log, err)
			return
		}
		text, raw := answer.([]byte)
		if !raw {
			if text, err = json.Marshal(answer); err != nil {
				refuse(w, r, log, err)
				return
			}
			text = append(text, '\n')
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(slow)) // a socket has deadlines
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text) // the requester is gone, or too slow
	}
}

// read decodes the body of a request. No body is an empty request.
func read(r *http.Request, request any) error {
	var text bytes.Buffer
	if _, err := text.ReadFrom(r.Body); err != nil {
		return &client.Error{Kind: client.BadRequest, Message: "read body: " + err.Error()}
	}
	if len(bytes.TrimSpace(text.Bytes())) == 0 {
		return nil
	}
	if err := json.Unmarshal(text.Bytes(), request, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(false)); err != nil {
		return &client.Error{Kind: client.BadRequest, Message: "read body: " + err.Error()}
	}
	return nil
}

// statuses are the HTTP statuses of the kinds of Error.
var statuses = map[string]int{
	client.BadRequest: http.StatusBadRequest,
	client.Forbidden:  http.StatusForbidden,
	client.NoTask:     http.StatusNotFound,
	client.NoResult:   http.StatusNotFound,
	client.NoRoute:    http.StatusNotFound,
	client.Conflict:   http.StatusConflict,
	client.Internal:   http.StatusInternalServerError,
	client.Stopping:   http.StatusServiceUnavailable,
	client.Busy:       http.StatusServiceUnavailable,
	client.Unfinished: http.StatusGatewayTimeout,
}

// refuse answers with an error, and logs an internal one.
func refuse(w http.ResponseWriter, r *http.Request, log zerolog.Logger, err error) {
	kind, words := kindOf(r.Context(), err), err.Error()
	if kind == client.Internal {
		log.Error().Str("path", r.URL.Path).Err(err).Msg("request at the control socket failed")
	}
	fail(w, statuses[kind], kind, words)
}

func kindOf(ctx context.Context, err error) string {
	said, ok := errors.AsType[*client.Error](err)
	_, conflict := errors.AsType[*core.StateError](err)
	_, unfit := errors.AsType[*dispatch.ApplyError](err)
	_, mayNot := errors.AsType[*core.ForbiddenError](err)
	_, unrouted := errors.AsType[*dispatch.RouteError](err)
	switch {
	case ok:
		return said.Kind
	case mayNot:
		return client.Forbidden
	case errors.Is(err, dispatch.ErrNoAgent):
		return client.BadRequest
	case conflict, unfit, unrouted, errors.Is(err, core.ErrTooLate), errors.Is(err, core.ErrChanged),
		errors.Is(err, core.ErrLeased), errors.Is(err, core.ErrLeaseOver),
		errors.Is(err, core.ErrStillRefused), errors.Is(err, core.ErrFollower), errors.Is(err, dispatch.ErrNoRequest):
		return client.Conflict
	case errors.Is(err, dispatch.ErrNoAnswer):
		return client.BadRequest
	case errors.Is(err, ledger.ErrUnknown):
		return client.NoTask
	case errors.Is(err, errLate):
		return client.Unfinished
	case ctx.Err() != nil:
		return client.Stopping
	}
	return client.Internal
}

func fail(w http.ResponseWriter, status int, kind, words string) {
	text, err := json.Marshal(client.Failure{Error: client.Error{Kind: kind, Message: strings.ToValidUTF8(words, "?")}})
	if err != nil {
		text = []byte(`{"error":{"kind":"internal","message":""}}`) // these values always encode
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(slow))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}
