package external

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// A badAgent answers at the path of the card, and at that of JSON-RPC by the method.
type badAgent struct {
	card    func(url string) string
	answers map[string]http.HandlerFunc
}

// start starts the agent, which says of itself that it has no streams unless its card does.
func (b badAgent) start(t *testing.T) string {
	t.Helper()
	var url string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			if b.card == nil {
				fmt.Fprint(w, cardWith(url, "1.0", false))
			} else if text := b.card(url); text != "" {
				fmt.Fprint(w, text)
			} else {
				http.NotFound(w, r)
			}
			return
		}
		text, _ := io.ReadAll(r.Body)
		var call struct{ Method string }
		_ = json.Unmarshal(text, &call)
		w.Header().Set("Content-Type", "application/json")
		if answer := b.answers[call.Method]; answer != nil {
			answer(w, r)
			return
		}
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":"1","error":{"code":-32601,"message":"no such method"}}`)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	url = s.URL
	return s.URL
}

func cardWith(url, version string, streams bool) string {
	return fmt.Sprintf(`{"name":"bad","version":"1","description":"","capabilities":{"streaming":%v},"defaultInputModes":[],`+
		`"defaultOutputModes":[],"skills":[],`+
		`"supportedInterfaces":[{"url":%q,"protocolBinding":"JSONRPC","protocolVersion":%q}]}`, streams, url, version)
}

// signedWith returns a card with a signature by a new key that it names, which is of another text if it is wrong.
func signedWith(t *testing.T, url string, wrong bool) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.RawURLEncoding.EncodeToString
	header := encoded(fmt.Appendf(nil, `{"alg":"EdDSA","jwk":{"kty":"OKP","crv":"Ed25519","x":%q}}`, encoded(public)))
	// The canonical form: members in order, and none that is empty.
	payload := fmt.Sprintf(`{"name":"bad","supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"%s"}],`+
		`"version":"1"}`, url)
	if wrong {
		payload = strings.Replace(payload, "bad", "good", 1)
	}
	signature := encoded(ed25519.Sign(private, []byte(header+"."+encoded([]byte(payload)))))
	card := cardWith(url, "1.0", false)
	return fmt.Sprintf(`%s,"signatures":[{"protected":%q,"signature":%q}]}`, strings.TrimSuffix(card, "}"), header, signature)
}

// rpc answers a call with a result.
func rpc(result string) http.HandlerFunc {
	return say(200, `{"jsonrpc":"2.0","id":"1","result":`+result+`}`)
}

func taskIn(id, state string) string {
	return fmt.Sprintf(`{"id":%q,"contextId":"c","status":{"state":"TASK_STATE_%s"}}`, id, state)
}

func events(text string) http.HandlerFunc { return say(200, text, "Content-Type", "text/event-stream") }

func TestBadInputOfAnAgentOfA2AIsAnErrorWithItsReason(t *testing.T) {
	working := rpc(`{"task":` + taskIn("7", "WORKING") + `}`)
	streaming := func(url string) string { return cardWith(url, "1.0", true) }
	for name, c := range map[string]struct {
		agent badAgent
		kind  envelope.Kind
		words string
	}{
		"no card":           {badAgent{card: func(string) string { return "" }}, envelope.AgentError, "404"},
		"a card of garbage": {badAgent{card: func(string) string { return "<html>" }}, envelope.AgentProtocol, "it is not a JSON object"},
		"a card of a list":  {badAgent{card: func(string) string { return "[]" }}, envelope.AgentProtocol, "it is not a JSON object"},
		"a huge card": {badAgent{card: func(string) string {
			return `{"name":"` + strings.Repeat("x", 2<<20) + `"}`
		}}, envelope.AgentProtocol, "larger than"},
		"an empty card": {badAgent{card: func(string) string { return "{}" }}, envelope.AgentProtocol, "no interface"},
		"another version": {badAgent{card: func(url string) string {
			return cardWith(url, "0.3", false)
		}}, envelope.AgentProtocol, `version "0.3"`},
		"another host": {badAgent{card: func(string) string {
			return cardWith("https://example.com/", "1.0", false)
		}}, envelope.AgentProtocol, "another host"},
		"a wrong signature": {badAgent{card: func(url string) string {
			return signedWith(t, url, true)
		}}, envelope.AgentProtocol, "signature 1 doesn't verify"},
		"a signature of garbage": {badAgent{card: func(url string) string {
			return strings.TrimSuffix(cardWith(url, "1.0", false), "}") + `,"signatures":[{"protected":"e30","signature":"?"}]}`
		}}, envelope.AgentProtocol, "signature 1 can't be read"},
		"a redirect": {badAgent{answers: map[string]http.HandlerFunc{
			"SendMessage": say(307, "", "Location", "https://example.com/"),
		}}, envelope.PolicyViolation, "another host"},
		"no JSON": {badAgent{answers: map[string]http.HandlerFunc{
			"SendMessage": say(200, "<html>"),
		}}, envelope.AgentProtocol, "not A2A"},
		"no result": {badAgent{answers: map[string]http.HandlerFunc{"SendMessage": rpc(`{}`)}}, envelope.AgentProtocol, "not A2A"},
		"no id": {badAgent{answers: map[string]http.HandlerFunc{
			"SendMessage": rpc(`{"task":` + taskIn("", "WORKING") + `}`),
		}}, envelope.AgentProtocol, "without the id"},
		"an error":        {badAgent{}, envelope.AgentError, "no such method"},
		"a refused login": {badAgent{answers: map[string]http.HandlerFunc{"SendMessage": say(401, "")}}, envelope.AgentError, "401"},
		"an unknown state": {badAgent{answers: map[string]http.HandlerFunc{
			"SendMessage": working, "GetTask": rpc(taskIn("7", "DREAMING")),
		}}, envelope.AgentProtocol, "DREAMING"},
		"another task": {badAgent{answers: map[string]http.HandlerFunc{
			"SendMessage": working, "GetTask": rpc(taskIn("8", "COMPLETED")),
		}}, envelope.AgentProtocol, `the task "8"`},
		"a forgotten task": {badAgent{answers: map[string]http.HandlerFunc{
			"SendMessage": working, "GetTask": say(200, `{"jsonrpc":"2.0","id":"1","error":{"code":-32001,"message":"what task"}}`),
		}}, envelope.RunLost, "doesn't know its task"},
		"garbage for a task": {badAgent{answers: map[string]http.HandlerFunc{
			"SendMessage": working, "GetTask": say(200, "garbage"),
		}}, envelope.AgentProtocol, "not A2A"},
		"a stream of another task": {badAgent{card: streaming, answers: map[string]http.HandlerFunc{
			"SendMessage": working, "GetTask": rpc(taskIn("7", "WORKING")),
			"SubscribeToTask": events(`data: {"jsonrpc":"2.0","id":"1","result":{"statusUpdate":{"taskId":"8",` +
				`"contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}}` + "\n\n")}},
			envelope.AgentProtocol, `the task "8"`},
		"null in a list": {badAgent{answers: map[string]http.HandlerFunc{"SendMessage": rpc(
			`{"task":{"id":"7","contextId":"c","artifacts":[null,{"artifactId":"a","parts":[null]}],` +
				`"history":[null],"status":{"state":"TASK_STATE_COMPLETED"}}}`)}}, "", ""},
		"a huge answer": {badAgent{answers: map[string]http.HandlerFunc{"SendMessage": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":"1","result":"`)
			_, _ = io.Copy(w, bytes.NewReader(bytes.Repeat([]byte("x"), maxAnswer)))
		}}}, envelope.OutputTooLarge, "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newRun(t)
			got := run(t, dir, askedA2A(c.agent.start(t)), requesting("do this"))
			expect(t, name, got, c.kind, c.words)
			if got.Again {
				t.Errorf("result = %+v; want no other attempt", got)
			}
		})
	}
}

func TestASignedCardVerifies(t *testing.T) {
	url := badAgent{card: func(url string) string { return signedWith(t, url, false) }}.start(t)
	if card, err := ReadCard(t.Context(), task.Service{URL: url, Mode: task.ServiceA2A}, ""); err != nil || !card.Signed {
		t.Errorf("card = %+v, %v; want a signed one", card, err)
	}
}

// silent begins an answer and goes on with it when the request ends.
func silent(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush() // it can
	<-r.Context().Done()
}

func TestAnAgentThatIsSilentForTooLongEndsItsRun(t *testing.T) {
	s := askedA2A(badAgent{answers: map[string]http.HandlerFunc{"SendMessage": silent}}.start(t))
	s.IdleTimeout = task.Duration(50 * time.Millisecond)
	got := run(t, newRun(t), s, requesting("do this"))
	expect(t, "silent", got, envelope.IdleTimeout, "sent nothing more within 50ms")
}

func TestWhatAStreamDoesNotSayIsReadFromTheTask(t *testing.T) {
	for name, stream := range map[string]http.HandlerFunc{
		"garbage": events("data: garbage\n\n"), "nothing": events(": hello\n\n"), "silence": silent, "no stream": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var looks atomic.Int32
			s := askedA2A(badAgent{
				card: func(url string) string { return cardWith(url, "1.0", true) },
				answers: map[string]http.HandlerFunc{
					"SendMessage": rpc(`{"task":` + taskIn("7", "WORKING") + `}`), "SubscribeToTask": stream,
					"GetTask": func(w http.ResponseWriter, r *http.Request) {
						state := "WORKING"
						if looks.Add(1) > 1 {
							state = "COMPLETED"
						}
						rpc(taskIn("7", state))(w, r)
					},
				},
			}.start(t))
			s.IdleTimeout = task.Duration(2 * time.Second) // of the silent stream; each other answer comes at once
			expect(t, name, run(t, newRun(t), s, requesting("do this")), "", "")
		})
	}
}

// A server may say only after it has taken a message that it has no streams.
func TestAMessageIsSentOnceToAnAgentThatRefusesStreams(t *testing.T) {
	messages := 0
	take := func(answer http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			messages++
			answer(w, r)
		}
	}
	s := askedA2A(badAgent{
		card: func(url string) string { return cardWith(url, "1.0", true) },
		answers: map[string]http.HandlerFunc{
			"SendStreamingMessage": take(say(200, `{"jsonrpc":"2.0","id":"1","error":{"code":-32004,"message":"no streams"}}`)),
			"SendMessage":          take(rpc(`{"task":` + taskIn("7", "COMPLETED") + `}`)),
		},
	}.start(t))
	got := run(t, newRun(t), s, requesting("do this"))
	if expect(t, "refused", got, "", ""); messages != 1 {
		t.Errorf("%d messages; want one", messages)
	}
}

// An agent that shows its old question for a while after the reply asks no second time.
func TestAQuestionThatWasAnsweredIsNotAskedAgain(t *testing.T) {
	looks, replies := 0, 0
	question := `{"id":"7","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED",` +
		`"message":{"messageId":"q","role":"ROLE_AGENT","parts":[{"text":"which?"}]}}}`
	url := badAgent{answers: map[string]http.HandlerFunc{
		"SendMessage": func(w http.ResponseWriter, r *http.Request) {
			replies++
			rpc(`{"task":`+question+`}`)(w, r)
		},
		"GetTask": func(w http.ResponseWriter, r *http.Request) {
			if looks++; looks > 1 {
				rpc(taskIn("7", "COMPLETED"))(w, r)
				return
			}
			rpc(question)(w, r)
		},
	}}.start(t)
	first := newRun(t)
	if got := run(t, first, askedA2A(url), requesting("do this")); got.Question != "which?" {
		t.Fatalf("result = %+v; want the question", got)
	}
	_, out, _ := next(t, first, "run-2", askedA2A(url), "", "do this", "the second one")
	if got := resultOf(t, out); got.Answer == nil || replies != 2 || looks != 2 {
		t.Errorf("result = %+v after %d messages and %d looks; want the answer, and one reply", got, replies, looks)
	}
	_, out, _ = next(t, first, "run-3", askedA2A(url+"/other"), "", "do this", "the second one")
	if got := resultOf(t, out); got.Kind != envelope.RunLost || !strings.Contains(got.Message, "another address now") {
		t.Errorf("result at another address = %+v; want run_lost", got)
	}
}

func TestAnAgentThatNeverEndsItsTaskIsLeft(t *testing.T) {
	defer func(before time.Duration) { cancelTimeout = before }(cancelTimeout)
	cancelTimeout = 100 * time.Millisecond
	ctx, end := context.WithCancel(t.Context())
	asked := 0
	url := badAgent{answers: map[string]http.HandlerFunc{
		"SendMessage": rpc(`{"task":` + taskIn("7", "WORKING") + `}`),
		"CancelTask":  rpc(taskIn("7", "WORKING")),
		"GetTask": func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked == 1 {
				end()
			}
			rpc(taskIn("7", "WORKING"))(w, r)
		},
	}}.start(t)
	dir := newRun(t)
	var out bytes.Buffer
	o := Options{Service: askedA2A(url), Dir: dir, RunID: "run-1", Stdout: &out, Stderr: io.Discard}
	requesting("do this")(&o)
	if err := Run(ctx, o); err != nil {
		t.Fatal(err)
	}
	expect(t, "a task without an end", resultOf(t, out.String()), envelope.Cancelled, "it did not end its task within 100ms")
}
