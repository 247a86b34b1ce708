// Package fakemodel is a model server on the loopback interface for tests. It speaks the
// Messages API of Anthropic, the Responses and Chat Completions APIs of OpenAI, and Gemini's
// generateContent, with and without streaming. A test scripts its replies, and reads what
// was asked.
package fakemodel

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxRequest bounds the body of a request, in bytes.
const maxRequest = 32 << 20

// A Server replies to the requests of a model's clients. It is safe for concurrent use.
type Server struct {
	listener  net.Listener
	scheme    string
	authority []byte
	http      http.Server
	serving   sync.WaitGroup
	closing   sync.Once
	closed    chan struct{} // ends silent replies

	mu       sync.Mutex // guards what follows
	script   []Reply
	last     Reply // repeated when the script is at its end
	requests []Request
	arrived  chan struct{} // closed and replaced at each request
}

// A Request is what a client asked.
type Request struct {
	API      string // messages, responses, chat or gemini
	Path     string
	Model    string
	System   string    // the instructions
	Messages []Message // without the instructions, in order
	Tools    []string  // names of the tools that the model may call
	Side     bool      // a request of the program for itself, such as for a title
	Body     []byte    // as it was sent
	At       time.Time // when it came
}

// A Message is one entry of a conversation, with its texts, calls and results joined.
type Message struct {
	Role string
	Text string
}

// Start starts a server on an unused port of 127.0.0.1. It replies with the text "ok" until
// a script is set. Close stops it.
func Start() (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return serve(listener), nil
}

func serve(listener net.Listener) *Server {
	s := &Server{listener: listener, scheme: "http", closed: make(chan struct{}), arrived: make(chan struct{}), last: Text("ok")}
	s.http = http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.serving.Go(func() { _ = s.http.Serve(listener) }) // it returns when Close is called
	return s
}

// URL returns the address of the server, without a path.
func (s *Server) URL() string { return s.scheme + "://" + s.listener.Addr().String() }

// Close ends all connections and stops the server. Calling it twice is harmless.
func (s *Server) Close() {
	s.closing.Do(func() {
		close(s.closed)
		_ = s.http.Close()
	})
	s.serving.Wait()
}

// Script sets the replies to the next requests, one each. The last one is repeated. Requests
// for titles and the like get a short text and use up none.
func (s *Server) Script(replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = replies
	if len(replies) > 0 {
		s.last = replies[len(replies)-1]
	}
}

// Requests returns the requests so far, in order, without those of the program for itself.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var main []Request
	for _, r := range s.requests {
		if !r.Side {
			main = append(main, r)
		}
	}
	return main
}

// All returns the requests so far, in order, also those of the program for itself.
func (s *Server) All() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Arrived returns a channel that is closed at the next request.
func (s *Server) Arrived() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrived
}

// An api is a protocol of a provider.
type api struct {
	name    string
	read    func(path string, body []byte) (Request, bool) // and whether it asks for a stream
	stream  func(out *events, model string, r Reply)
	whole   func(model string, r Reply) any
	problem func(w http.Header, p Problem, after time.Duration, note string) (status int, body any)
}

func apiOf(path string) *api {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return &messagesAPI
	case strings.HasSuffix(path, "/responses"):
		return &responsesAPI
	case strings.HasSuffix(path, "/chat/completions"):
		return &chatAPI
	case strings.Contains(path, "enerateContent"):
		return &geminiAPI
	}
	return nil
}

// ServeHTTP replies to one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := apiOf(r.URL.Path)
	if r.Header.Get("Upgrade") != "" {
		w.WriteHeader(http.StatusUpgradeRequired) // Codex asks for a WebSocket, and takes this for a no
		return
	}
	if a == nil || r.Method != http.MethodPost {
		http.Error(w, `{"error":{"message":"the fake model server has no such resource"}}`, http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		return // the client is gone
	}
	came := time.Now()
	request, stream := a.read(r.URL.Path, body)
	request.API, request.Path, request.Body, request.At = a.name, r.URL.Path, body, came
	request.Side = request.sideReply() != ""
	reply := s.next(request)
	switch {
	case reply.Silent:
		s.wait(r, nil)
	case reply.Problem != 0:
		status, problem := a.problem(w.Header(), reply.Problem, reply.After, reply.Text)
		writeJSON(w, status, problem)
	case stream:
		out := &events{w: w, pause: func(until <-chan struct{}) { s.wait(r, until) }}
		out.start()
		defer func() {
			if r := recover(); r != nil && r != errShort {
				panic(r)
			}
		}()
		a.stream(out, request.Model, reply)
	default:
		writeJSON(w, http.StatusOK, a.whole(request.Model, reply))
	}
}

// next records a request and returns its reply.
func (s *Server) next(r Request) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	close(s.arrived)
	s.arrived = make(chan struct{})
	if r.Side {
		return Reply{Text: r.sideReply()} // without a usage, since not every program counts these
	}
	reply := s.last
	if len(s.script) > 0 {
		reply, s.script = s.script[0], s.script[1:]
	}
	return reply
}

// wait returns when the client or the server is done, or until is closed, which may be nil.
func (s *Server) wait(r *http.Request, until <-chan struct{}) {
	select {
	case <-until:
	case <-r.Context().Done():
	case <-s.closed:
	}
}

// sideReplies are the replies to requests that programs make for themselves, by a part of
// their instructions.
var sideReplies = map[string]string{
	"title generator":     "A title",                                                       // opencode
	"sentence-case title": `{"title":"A title"}`,                                           // Claude Code
	"naming a coding":     `{"title":"A title"}`,                                           // Claude Code in its SDK
	"Task Routing AI":     `{"complexity_reasoning":"It is short.","complexity_score":10}`, // Gemini CLI, which chooses a model by it
}

// sideReply returns the reply to a request of a program for itself; "" for another one.
func (r Request) sideReply() string {
	for part, reply := range sideReplies {
		if strings.Contains(r.System, part) {
			return reply
		}
	}
	return ""
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	raw, err := json.Marshal(value)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // an error means that the client is gone
}

// textOf joins the texts in a content: a text, or a list of parts. Parts without a text are
// kept as JSON, so that a test can look for a call or its result.
func textOf(content jsontext.Value) string {
	var text string
	if content.Kind() == '"' {
		_ = json.Unmarshal(content, &text)
		return text
	}
	var parts []jsontext.Value
	if json.Unmarshal(content, &parts) != nil {
		return string(content)
	}
	var all []string
	for _, part := range parts {
		var p struct {
			Text *string `json:"text"`
		}
		if json.Unmarshal(part, &p) == nil && p.Text != nil {
			all = append(all, *p.Text)
		} else {
			all = append(all, string(part))
		}
	}
	return strings.Join(all, "\n")
}
