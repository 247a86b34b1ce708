package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode"

	"mailboxd/internal/access/client"
	"mailboxd/internal/access/web/access"
	"mailboxd/internal/access/web/live"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
)

//go:embed templates assets
var files embed.FS

// pages are the templates and the files beside them.
type pages struct {
	templates map[string]*template.Template // by the name of the page
	assets    map[string][]byte             // by path
	version   string                        // of the assets, so that browsers can keep them
}

// newPages reads what is embedded.
func newPages() (*pages, error) {
	p := &pages{templates: map[string]*template.Template{}, assets: map[string][]byte{}}
	sum := sha256.New()
	err := fs.WalkDir(files, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		p.assets["/"+path.Base(name)] = text
		sum.Write(text)
		return err
	})
	if err != nil {
		return nil, err
	}
	p.version = hex.EncodeToString(sum.Sum(nil)[:6])
	common, err := template.New("").Funcs(functions).ParseFS(files, "templates/layout.html", "templates/parts.html", "templates/work.html")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		one, err := template.Must(common.Clone()).ParseFS(files, name)
		if err != nil {
			return nil, err
		}
		p.templates[strings.TrimSuffix(path.Base(name), ".html")] = one
	}
	return p, nil
}

// paths are the paths of the assets.
func (p *pages) paths() (all []string) {
	for path := range p.assets {
		all = append(all, path)
	}
	return all
}

// asset answers with a file that is embedded.
func (s *server) asset(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.URL.Path)))
	if r.URL.Query().Get("v") == s.pages.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	_, _ = w.Write(s.pages.assets[r.URL.Path])
}

// A page is what a template shows.
type page struct {
	Name    string // of the template
	Title   string
	Root    string // of the mailbox
	Version string // of the assets
	Token   string // for the forms; "" without a session
	Approve bool
	Now     time.Time
	Waits   int    // tasks that wait for a person
	Last    int64  // the last event that the page knows
	Here    string // the URL of the page
	Path    string
	Still   bool   // the page answers a form, so nothing updates it
	Gone    string // what to say once the daemon is gone
	Data    any
}

// A question is what a page needs to be shown.
type question struct {
	*http.Request
	reader *reader.Reader
	daemon *client.Client
	status client.Status
	now    time.Time
	waits  waiters
}

// A showFunc gathers what a page shows.
type showFunc func(context.Context, question) (page, error)

// shown is a page and the function that gathers it.
type shown struct {
	show        showFunc
	name, title string // "": known once it is gathered
}

// page returns the handler of a page. Of a page whose name and title are known, a browser gets each part as soon as that
// is known, and begins to read and draw it while the rest is gathered.
func (s *server) page(v shown) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p, err := s.gather(r, v.show, func(part, left string, known page) {
			if known.Name, known.Title = v.name, v.title; known.Name != "" && r.Header.Get("Sec-Fetch-Dest") == "document" {
				w = s.writePart(w, r, part, left, known)
			}
		})
		if err != nil {
			s.failWith(w, r, err)
			return
		}
		s.write(w, r, http.StatusOK, p)
	}
}

// gather asks the daemon for what a page shows, and calls known with each part that is known, and what is left then. Its
// connection has ended before the last part is written, so a browser that reads slowly keeps none.
func (s *server) gather(r *http.Request, show showFunc, known func(part, left string, p page)) (page, error) {
	rd, daemon, err := s.opts.Location.Connect(r.Context())
	if err != nil {
		return page{}, err
	}
	defer rd.Close()
	known("head", "body", page{})
	status, err := daemon.Status(r.Context()) // first: what comes later is asked for by the browser
	if err != nil {
		return page{}, err
	}
	waits, err := waitersIn(r.Context(), daemon, status.Open)
	if err != nil {
		return page{}, err
	}
	known("top", "rest", page{Last: status.LastEvent, Waits: waits.all()})
	p, err := show(r.Context(), question{r, rd, daemon, status, time.Now(), waits})
	p.Last, p.Waits = status.LastEvent, waits.all()
	return p, err
}

// A begunPage is the answer to a request whose browser has the beginning of the page already.
type begunPage struct {
	http.ResponseWriter
	left string // the part that it lacks
}

// mostPart is how long a browser may take for a part before the last, which fits into the buffer of its connection.
const mostPart = time.Second

// writePart writes a part of a page before the last one.
func (s *server) writePart(w http.ResponseWriter, r *http.Request, part, left string, p page) http.ResponseWriter {
	text, err := s.text(r, part, p)
	if err != nil {
		return w // the whole page fails too, and says why
	}
	if begun, hasBegun := w.(begunPage); hasBegun {
		w = begun.ResponseWriter
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	sent := http.NewResponseController(w)
	_ = sent.SetWriteDeadline(time.Now().Add(mostPart)) // a test has no connection
	_, _ = w.Write(text)
	_ = sent.Flush()
	return begunPage{w, left}
}

// write writes a page, or the rest of one that has begun.
func (s *server) write(w http.ResponseWriter, r *http.Request, status int, p page) {
	part := "layout"
	begun, hasBegun := w.(begunPage)
	if hasBegun {
		w, part = begun.ResponseWriter, begun.left
	}
	text, err := s.text(r, part, p)
	if err != nil {
		http.Error(w, "show page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(live.Slowest)) // a test has no connection
	if !hasBegun {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
	}
	_, _ = w.Write(changedRows(text, rowsIn(r)))
}

// text returns a part of a page.
func (s *server) text(r *http.Request, part string, p page) ([]byte, error) {
	p.Root, p.Version, p.Approve, p.Now = s.root, s.pages.version, s.opts.Approve, cmp.Or(p.Now, time.Now())
	p.Token, p.Here, p.Path = access.SessionOf(r).Token, r.URL.RequestURI(), r.URL.EscapedPath()
	p.Still, p.Gone = r.Method == http.MethodPost, s.gone()
	var text bytes.Buffer
	err := s.pages.templates[p.Name].ExecuteTemplate(&text, part, p)
	return visible(text.Bytes()), err
}

// visible replaces the characters of a page that control how text is shown, or show nothing, by
// their escapes. No template has one, so each is from an agent or a requester.
func visible(text []byte) []byte {
	plain := func(r rune) bool { return r == '\n' || r == '\t' || r != unicode.ReplacementChar && unicode.IsPrint(r) }
	if !bytes.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return text
	}
	var safe bytes.Buffer
	for _, r := range string(text) {
		if plain(r) {
			safe.WriteRune(r)
		} else {
			fmt.Fprintf(&safe, "\\u%04x", r)
		}
	}
	return safe.Bytes()
}

// A notice is a page with a few words.
type notice struct {
	Words string
	Next  string // what a person can do
	Link  string // a page that helps; "" for none
	Label string // of the link
}

// fail shows why there is no page.
func (s *server) fail(w http.ResponseWriter, r *http.Request, status int, words string) {
	s.write(w, r, status, page{Name: "notice", Title: http.StatusText(status), Data: notice{Words: words}})
}

// failWith shows an error.
func (s *server) failWith(w http.ResponseWriter, r *http.Request, err error) {
	said, answered := errors.AsType[*client.Error](err)
	waits, isAsking := errors.AsType[*askingError](err)
	changed, isChanged := errors.AsType[*changedError](err)
	switch {
	case isChanged:
		s.write(w, r, http.StatusConflict, page{Name: "changed", Title: "It has changed", Data: changed})
	case isAsking:
		s.write(w, r, http.StatusConflict, page{Name: "notice", Title: "Another decision waits", Data: notice{
			Words: sentence(err.Error()), Link: "/decisions/" + waits.decision, Label: "See the decision that waits",
		}})
	case errors.Is(err, client.ErrDown):
		s.down(w, r, s.gone(), "Start it with mailboxd serve")
	case answered && (said.Kind == client.Stopping || said.Kind == client.Busy):
		s.down(w, r, sentence(err.Error()), "Wait for the daemon")
	case answered && said.Kind == client.Unfinished:
		s.write(w, r, http.StatusAccepted, page{Name: "notice", Title: "It has begun", Data: notice{
			Words: "It has begun and is not over yet: " + err.Error() + ".", Next: "The page of the task shows its end.",
		}})
	case answered && said.Kind == client.NoTask, exit.CodeOf(err) == exit.NoTask:
		s.fail(w, r, http.StatusNotFound, err.Error())
	case answered && said.Kind == client.Conflict:
		s.fail(w, r, http.StatusConflict, err.Error())
	case answered && said.Kind == client.Forbidden:
		s.fail(w, r, http.StatusForbidden, err.Error())
	case answered && said.Kind == client.BadRequest, exit.CodeOf(err) == exit.Usage:
		s.fail(w, r, http.StatusBadRequest, err.Error())
	default:
		s.fail(w, r, http.StatusInternalServerError, err.Error())
	}
}

// gone says that there is no daemon, and what its agents do meanwhile.
func (s *server) gone() string {
	if s.opts.StopsAgents {
		return "The daemon is not running. It ended its agents (stop_agents_on_exit), so nothing works meanwhile."
	}
	return "The daemon is not running. Agents that it started keep working, and it takes their answers when it is back. Nothing new starts."
}

// down shows that no daemon serves the page for now. Only a page that was asked for comes by itself.
func (s *server) down(w http.ResponseWriter, r *http.Request, words, next string) {
	if next += "; the page continues by itself."; r.Method == http.MethodPost {
		next, _, _ = strings.Cut(next, ";")
		next += ", and try again."
	}
	s.write(w, r, http.StatusServiceUnavailable, page{Name: "notice", Title: "No daemon", Data: notice{Words: words, Next: next}})
}

// refuse shows why a request is refused.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, why string) {
	s.write(w, r, http.StatusForbidden, page{Name: "notice", Title: "Refused", Data: notice{
		Words: "This request was refused: " + why + ".",
		Next:  "The daemon has recorded it. A new link: press Enter at the terminal of mailboxd web.",
	}})
}

// login asks for the secret of the link, which a browser keeps to itself until a script or the
// person sends it.
func (s *server) login(w http.ResponseWriter, r *http.Request) {
	s.write(w, r, http.StatusUnauthorized, page{Name: "login", Title: "Open the page"})
}
