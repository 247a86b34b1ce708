package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mailboxd/internal/access/client"
)

// last is the number of the newest event, and of the tasks.
func (w *world) last() (event int64, tasks int) {
	w.t.Helper()
	w.do(func(daemon *client.Client) error {
		status, err := daemon.Brief(w.t.Context())
		if err != nil {
			return err
		}
		event = status.LastEvent
		tasks, err = daemon.Count(w.t.Context(), client.Filter{})
		return err
	})
	return event, tasks
}

func TestBadInputIsAnErrorOfTheProtocolAndReachesNoLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	part := func(part string) string {
		return `{"message":{"messageId":"m","role":"ROLE_USER","metadata":{"agent":"echo"},"parts":[` + part + `]}}`
	}
	change := func(old, new string) string { return strings.Replace(part(`{"text":"x"}`), old, new, 1) }
	rpc := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	}
	large := strings.Repeat("x", 1<<20)
	before, _ := w.last()
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		says               string
	}{
		"a body that is too large": {"POST", "/message:send", part(`{"text":"` + large + `"}`), 413, "INVALID_REQUEST"},
		"the same in JSON-RPC":     {"POST", "/", rpc("SendMessage", part(`{"text":"`+large+`"}`)), 413, "-32600"},
		"a long task line":         {"POST", "/message:send", part(`{"text":"` + large[:1<<20-150] + `"}`), 400, "INVALID_REQUEST"},
		"no JSON":                  {"POST", "/message:send", "{", 400, "PARSE_ERROR"},
		"no JSON in JSON-RPC":      {"POST", "/", "{", 200, "-32700"},
		"no JSON-RPC":              {"POST", "/", "{}", 200, "-32600"},
		"an unknown method":        {"POST", "/", rpc("ApproveTask", "{}"), 200, "-32601"},
		"an old method":            {"POST", "/", rpc("message/send", part(`{"text":"x"}`)), 200, "-32601"},
		"an unknown path":          {"POST", "/v1/message:send", part(`{"text":"x"}`), 404, "METHOD_NOT_FOUND"},
		"another method":           {"PUT", "/message:send", part(`{"text":"x"}`), 404, "METHOD_NOT_FOUND"},
		"an unknown part":          {"POST", "/message:send", part(`{"video":"x"}`), 400, "PARSE_ERROR"},
		"an unknown part, RPC":     {"POST", "/", rpc("SendMessage", part(`{"video":"x"}`)), 200, "-32700"},
		"a file":                   {"POST", "/message:send", part(`{"raw":"eA=="}`), 400, "CONTENT_TYPE_NOT_SUPPORTED"},
		"the URL of a file":        {"POST", "/message:send", part(`{"url":"file:///etc/passwd"}`), 400, "CONTENT_TYPE_NOT_SUPPORTED"},
		"no part":                  {"POST", "/message:send", part(""), 400, "INVALID_PARAMS"},
		"no message":               {"POST", "/message:send", "{}", 400, "INVALID_PARAMS"},
		"no message id":            {"POST", "/message:send", change(`"messageId":"m",`, ""), 400, "INVALID_PARAMS"},
		"the role of an agent":     {"POST", "/message:send", change("USER", "AGENT"), 400, "INVALID_PARAMS"},
		"an unknown agent":         {"POST", "/message:send", change("echo", "nobody"), 400, "the skills of the card"},
		"no agent":                 {"POST", "/message:send", change(`"agent":"echo"`, ""), 400, "the skills of the card"},
		"every agent":              {"POST", "/message:send", change("echo", "*"), 400, "the skills of the card"},
		"a line feed in a context": {"POST", "/message:send", change(`"messageId"`, `"contextId":"a\nb","messageId"`), 400, "contextId"},
		"a push notification":      {"POST", "/tasks/x/pushNotificationConfigs", `{"url":"http://x/"}`, 400, "PUSH_NOTIFICATION_NOT_SUPPORTED"},
		"a large page":             {"GET", "/tasks?pageSize=1000", "", 400, "INVALID_PARAMS"},
		"a page of another list":   {"GET", "/tasks?pageToken=x", "", 400, "INVALID_PARAMS"},
		"another version":          {"GET", "/tasks", "", 400, "VERSION_NOT_SUPPORTED"},
		"a batch":                  {"POST", "/", "[" + rpc("ListTasks", "{}") + "]", 200, "-32602"},
	} {
		status, text := w.raw(c.method, c.path, w.tokens["acme"], c.body, func(r *http.Request) {
			if name == "another version" {
				r.Header.Set("A2A-Version", "0.3")
			}
		})
		if status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s: %s %s = %d, %.300s; want %d, %s", name, c.method, c.path, status, text, c.status, c.says)
		}
	}
	if after, tasks := w.last(); after != before || tasks != 0 {
		t.Errorf("after bad input there are %d events more and %d tasks; want none", after-before, tasks)
	}
}

func TestAFloodOfOneSenderIsRefusedAndOthersAreServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stop(w.gateway)
	w.open("--listen", strings.TrimPrefix(w.url, "http://"), "--rate", "1")
	before, _ := w.last()
	var statuses sync.Map
	var served atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 25 {
				status, text := w.raw("GET", "/tasks", w.tokens["acme"], "", nil)
				statuses.Store(status, text)
				if status == 200 {
					served.Add(1)
				}
			}
		})
	}
	all.Wait()
	text, flooded := statuses.Load(429)
	if !flooded || !strings.Contains(fmt.Sprint(text), "RESOURCE_EXHAUSTED") || served.Load() < 10 || served.Load() == 100 {
		t.Errorf("of 100 requests at once %d were served, and a refused one is %v; want at least 10, and 429", served.Load(), text)
	}
	if status, text := w.raw("GET", "/tasks", w.tokens["other"], "", nil); status != 200 {
		t.Errorf("another sender gets %d, %s; want 200", status, text)
	}
	if after, tasks := w.last(); after != before || tasks != 0 {
		t.Errorf("after the flood there are %d events more and %d tasks; want none", after-before, tasks)
	}
}
