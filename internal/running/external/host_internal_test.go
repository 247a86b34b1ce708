package external

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

const done = `{"status":"ok","output":{"summary":"did it"}}`

// answering returns a service that answers in a mode.
func answering(t *testing.T, mode task.ServiceMode) *service {
	switch mode {
	case task.ServiceStream:
		events := "event: progress\ndata: {\"pct\":40}\n\nevent: result\ndata: " + done + "\n\n"
		return newService(t, say(200, events, "Content-Type", "text/event-stream"), nil)
	case task.ServicePoll:
		return newService(t, say(202, "", "Location", "/runs/7"), say(200, done))
	}
	return newService(t, say(200, done), nil)
}

func TestAServiceIsAskedOnceAndItsAnswerPrinted(t *testing.T) {
	for _, mode := range task.ServiceModes() {
		s := answering(t, task.ServiceMode(mode))
		dir := newRun(t)
		got := run(t, dir, asked(s.URL+"/run", task.ServiceMode(mode)))
		if string(got.Answer) != done || got.Kind != "" {
			t.Errorf("%s: result = %+v; want the answer", mode, got)
		}
		if posts := s.posts(); !slices.Equal(posts, []string{"run-1"}) {
			t.Errorf("%s: posts with the keys %q; want one with the id of the run", mode, posts)
		}
		if r, ok, err := ReadRecord(dir); !ok || err != nil || !r.Answered || r.Sent.IsZero() {
			t.Errorf("%s: record = %+v, %v, %v; want an answered one", mode, r, ok, err)
		}
	}
}

// steps are the points at which a host of a mode is killed.
var steps = map[task.ServiceMode][]string{
	task.ServiceJSON:   {"recorded", "sent", "answered", "printed"},
	task.ServiceStream: {"recorded", "sent", "answered", "printed"},
	task.ServicePoll:   {"recorded", "sent", "accepted", "located", "polled", "answered", "printed"},
}

// A host that is killed at any step is followed by another one, as after a restart of the machine.
func TestAKilledHostNeverLeadsToASecondPostUnlessItsAgentIsIdempotent(t *testing.T) {
	for mode, points := range steps {
		for _, step := range points {
			for _, idempotent := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%v", mode, step, idempotent), func(t *testing.T) {
					t.Parallel()
					s := answering(t, mode)
					asked := asked(s.URL, mode)
					asked.Idempotent = idempotent
					first := newRun(t)
					out, killed := runProcess(t, first, "run-1", asked, step)
					if !killed {
						t.Fatalf("the host printed %q and wasn't killed", out)
					}
					second := filepath.Join(filepath.Dir(first), "1.2")
					if err := os.Mkdir(second, 0o700); err != nil {
						t.Fatal(err)
					}
					if err := Carry(first, second); err != nil {
						t.Fatal(err)
					}
					out, _ = runProcess(t, second, "run-2", asked, "")
					got := resultOf(t, out)
					holdToOnePost(t, s, idempotent)
					placed := slices.Index(points, "located") >= 0 && slices.Index(points, step) >= slices.Index(points, "located")
					switch {
					case idempotent || placed:
						if string(got.Answer) != done {
							t.Errorf("second host: %+v; want the answer", got)
						}
					case got.Kind != envelope.RunLost || !strings.Contains(got.Message, "isn't idempotent") || got.Again:
						t.Errorf("second host: %+v; want run_lost with the reason", got)
					}
				})
			}
		}
	}
}

func holdToOnePost(t *testing.T, s *service, idempotent bool) {
	t.Helper()
	posts := s.posts()
	if len(posts) > 1 && !idempotent {
		t.Errorf("%d posts; want one at most", len(posts))
	}
	for _, key := range posts {
		if key != "run-1" {
			t.Errorf("a post has the key %q; want that of the first run", key)
		}
	}
}

func TestAnAnsweredRunIsNotCarriedOn(t *testing.T) {
	s := newService(t, say(429, "slow down", "Retry-After", "7"), nil)
	first := newRun(t)
	if got := run(t, first, asked(s.URL, task.ServiceJSON)); got.Status != 429 || got.RetryAfter != 7 {
		t.Errorf("result = %+v; want 429 and 7 seconds", got)
	}
	second := t.TempDir()
	if err := Carry(first, second); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := ReadRecord(second); ok {
		t.Error("the record of an answered request was carried on")
	}
}

func TestARefusalSaysWhatCanBeDone(t *testing.T) {
	for _, c := range []struct {
		status     int
		idempotent bool
		kind       envelope.Kind
		again      bool
		closed     bool // another attempt sends anew
	}{
		{401, false, envelope.AgentError, false, true},
		{403, false, envelope.AgentError, false, true},
		{400, true, envelope.AgentError, false, true},
		{500, false, envelope.AgentError, false, true},
		{500, true, envelope.AgentError, true, true},
		{502, false, envelope.RunLost, false, false},
		{504, true, envelope.AgentError, true, false},
		{503, false, envelope.AgentError, false, true},
		{202, false, envelope.AgentProtocol, false, false},
		{409, true, envelope.AgentError, false, true},
	} {
		s := newService(t, say(c.status, "why it is so"), nil)
		asked := asked(s.URL, task.ServiceJSON)
		asked.Idempotent = c.idempotent
		dir := newRun(t)
		got := run(t, dir, asked)
		if got.Kind != c.kind || got.Again != c.again || c.status != 202 && !strings.Contains(got.Message, "why it is so") {
			t.Errorf("%d, idempotent %v: %+v; want %s, again: %v", c.status, c.idempotent, got, c.kind, c.again)
		}
		if r, _, _ := ReadRecord(dir); r.Answered != c.closed {
			t.Errorf("%d, idempotent %v: answered = %v; want %v", c.status, c.idempotent, r.Answered, c.closed)
		}
	}
}

func TestASameKeyThatIsStillAtWorkIsAskedAgain(t *testing.T) {
	s := newService(t, say(409, "at work"), nil)
	asked := asked(s.URL, task.ServiceJSON)
	asked.Idempotent = true
	dir := newRun(t)
	if err := (Record{To: s.URL, Key: "run-0"}).write(dir); err != nil {
		t.Fatal(err)
	}
	if got := run(t, dir, asked); !got.Again {
		t.Errorf("result = %+v; want another attempt", got)
	}
	if r, _, _ := ReadRecord(dir); r.Answered || r.Key != "run-0" {
		t.Errorf("record = %+v; want the request open", r)
	}
}

func TestATokenIsInNothingThatTheHostWrites(t *testing.T) {
	const token = "s3cret-t0ken"
	s := newService(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: progress\ndata: {\"note\":\"%s\",\"ask\":{}}\n\n", r.Header.Get("Authorization"))
		fmt.Fprintf(w, "event: result\ndata: {\"status\":\"ok\",\"output\":{\"summary\":\"%s\"}}\n\n", r.Header.Get("Authorization"))
	}, nil)
	dir := newRun(t)
	service := asked(s.URL, task.ServiceStream)
	service.BearerEnv = "STUB_TOKEN"
	got := run(t, dir, service, func(o *Options) { o.Bearer = token })
	if !strings.Contains(string(got.Answer), "Bearer (STUB_TOKEN)") {
		t.Errorf("answer = %s; want the token sent, and replaced", got.Answer)
	}
	note, err := os.ReadFile(filepath.Join(dir, "progress.jsonl"))
	if string(note) != `{"note":"Bearer (STUB_TOKEN)"}`+"\n" {
		t.Errorf("progress = %q, %v; want the note alone, without the token", note, err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		if text, _ := os.ReadFile(file); strings.Contains(string(text), token) {
			t.Errorf("%s has the token", file)
		}
	}
}

func TestAServiceWithoutItsTokenIsNotAsked(t *testing.T) {
	s := answering(t, task.ServiceJSON)
	service := asked(s.URL, task.ServiceJSON)
	service.BearerEnv = "STUB_TOKEN"
	if got := run(t, newRun(t), service); got.Status != 401 || !strings.Contains(got.Message, "STUB_TOKEN") || len(s.posts()) > 0 {
		t.Errorf("result = %+v after %d posts; want a missing login, and none", got, len(s.posts()))
	}
}
