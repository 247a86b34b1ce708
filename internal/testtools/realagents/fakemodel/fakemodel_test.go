package fakemodel_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// An asker is a request in the form of each API, for a stream or not.
type asker struct {
	path, body         string
	streamPath, stream string
}

var apis = map[string]asker{
	"messages": {
		"/v1/messages", `{"model":"m","system":"be kind","messages":[{"role":"user","content":"hello"}],"tools":[{"name":"Write"}]}`,
		"/v1/messages", `{"model":"m","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}]}`,
	},
	"responses": {
		"/v1/responses", `{"model":"m","instructions":"be kind","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}],"tools":[{"type":"function","name":"Write"}]}`,
		"/v1/responses", `{"model":"m","stream":true,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}]}`,
	},
	"chat": {
		"/v1/chat/completions", `{"model":"m","messages":[{"role":"system","content":"be kind"},{"role":"user","content":"hello"}],"tools":[{"type":"function","function":{"name":"Write"}}]}`,
		"/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}`,
	},
	"gemini": {
		"/v1beta/models/m:generateContent", `{"systemInstruction":{"parts":[{"text":"be kind"}]},"contents":[{"role":"user","parts":[{"text":"hello"}]}],"tools":[{"functionDeclarations":[{"name":"Write"}]}]}`,
		"/v1beta/models/m:streamGenerateContent", `{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`,
	},
}

func start(t *testing.T, script ...fakemodel.Reply) *fakemodel.Server {
	t.Helper()
	s, err := fakemodel.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.Script(script...)
	return s
}

// post returns the answer to a request; err is that of reading its body.
func post(t *testing.T, url, body string) (status int, header http.Header, text string, err error) {
	t.Helper()
	response, err := http.Post(url, "application/json", bytes.NewBufferString(body))
	if err != nil {
		return 0, nil, "", err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(raw), err
}

func TestEachAPIRepliesWithTheScriptedTextAndRecordsTheRequest(t *testing.T) {
	for name, a := range apis {
		s := start(t, fakemodel.Text("one"), fakemodel.Text("two"))
		_, _, first, err := post(t, s.URL()+a.path, a.body)
		if err != nil || !strings.Contains(first, `"one"`) {
			t.Errorf("%s: %v, it replied %s; want one", name, err, first)
		}
		for range 2 { // the last reply is repeated
			_, header, text, err := post(t, s.URL()+a.streamPath, a.stream)
			if err != nil || header.Get("Content-Type") != "text/event-stream" || !strings.Contains(text, `"t"`) || !strings.Contains(text, `"wo"`) {
				t.Errorf("%s: %v, it streamed %s; want t and wo", name, err, text)
			}
		}
		all := s.Requests()
		if len(all) != 3 {
			t.Fatalf("%s: it recorded %d requests; want 3", name, len(all))
		}
		r := all[0]
		if r.API != name || r.Model != "m" || r.System != "be kind" || len(r.Messages) != 1 || r.Messages[0] != (fakemodel.Message{Role: "user", Text: "hello"}) ||
			len(r.Tools) != 1 || r.Tools[0] != "Write" {
			t.Errorf("%s: it recorded %+v", name, r)
		}
	}
}

func TestEachAPICallsATool(t *testing.T) {
	for name, a := range apis {
		s := start(t, fakemodel.ToolCall("Write", map[string]any{"file_path": "hello.txt"}))
		for path, body := range map[string]string{a.path + "?": a.body, a.streamPath: a.stream} {
			_, _, text, err := post(t, s.URL()+path, body)
			if err != nil || !strings.Contains(text, `"Write"`) || !strings.Contains(text, "hello.txt") {
				t.Errorf("%s: %v, it replied %s; want a call", name, err, text)
			}
		}
	}
}

func TestEachAPIHasItsProvidersErrors(t *testing.T) {
	for name, want := range map[string][6]int{
		"messages": {401, 429, 529, 503, 429, 400}, "responses": {401, 429, 503, 503, 429, 400},
		"chat": {401, 429, 503, 503, 429, 400}, "gemini": {400, 429, 503, 503, 429, 400},
	} {
		for i, p := range []fakemodel.Problem{
			fakemodel.Unauthorized, fakemodel.RateLimited, fakemodel.Overloaded, fakemodel.Unavailable, fakemodel.QuotaUsedUp, fakemodel.TooLong,
		} {
			s := start(t, fakemodel.Fails(p, 90*time.Second))
			status, header, text, err := post(t, s.URL()+apis[name].streamPath, apis[name].stream)
			if err != nil || status != want[i] || !strings.Contains(text, `"error"`) {
				t.Errorf("%s: problem %d is status %d %s, %v; want %d", name, p, status, text, err, want[i])
			}
			after := header.Get("Retry-After")
			if name == "gemini" && strings.Contains(text, `"retryDelay":"90s"`) {
				after = "90"
			}
			if after != "90" {
				t.Errorf("%s: problem %d is to be retried after %q; want 90", name, p, after)
			}
		}
	}
}

func TestAStreamCanBeCut(t *testing.T) {
	for name, a := range apis {
		s := start(t, fakemodel.Reply{Text: "a long answer", Cut: true})
		_, _, text, err := post(t, s.URL()+a.streamPath, a.stream)
		if err == nil || !strings.Contains(text, "a long") || strings.Contains(text, "swer") {
			t.Errorf("%s: %v, it streamed %s; want a half and a broken connection", name, err, text)
		}
	}
}

func TestAStreamGoesOnWhenTheTestSaysSo(t *testing.T) {
	for name, a := range apis {
		resume := make(chan struct{})
		s := start(t, fakemodel.Reply{Text: "a long answer", Until: resume})
		arrived := s.Arrived()
		var resuming sync.WaitGroup
		resuming.Go(func() {
			<-arrived
			close(resume)
		})
		_, _, text, err := post(t, s.URL()+a.streamPath, a.stream)
		resuming.Wait()
		if err != nil || !strings.Contains(text, "swer") {
			t.Errorf("%s: %v, it streamed %s; want all of it", name, err, text)
		}
	}
}

func TestCloseEndsASilentReply(t *testing.T) {
	s, err := fakemodel.Start()
	if err != nil {
		t.Fatal(err)
	}
	s.Script(fakemodel.Silence())
	arrived := s.Arrived()
	var closing sync.WaitGroup
	closing.Go(func() {
		<-arrived
		s.Close()
	})
	_, _, text, _ := post(t, s.URL()+apis["chat"].path, apis["chat"].body) // the broken connection is an error
	closing.Wait()
	if text != "" || len(s.Requests()) != 1 {
		t.Errorf("it replied %q to %d requests; want nothing to one", text, len(s.Requests()))
	}
}
