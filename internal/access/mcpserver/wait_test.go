package mcpserver_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mailboxd/internal/access/client"
	"mailboxd/internal/access/mcpserver"
)

// runningTask returns a client that knows one task, which runs for ever.
func runningTask() *client.Client {
	t := client.Task{ID: "t1", State: "running"}
	answers := http.NewServeMux()
	answer := func(path string, text any) {
		answers.HandleFunc(client.Base+path, func(w http.ResponseWriter, _ *http.Request) { _ = json.MarshalWrite(w, text) })
	}
	answer("/tasks", client.Page{Tasks: []client.Task{t}})
	answer("/tasks/t1/row", t)
	answer("/tasks/t1", client.TaskDetails{Task: t, Why: "its agent is at work"})
	return client.Within(answers)
}

func TestAWaitNeverOutlivesItsBound(t *testing.T) {
	for _, c := range []struct {
		name, arguments string
		want, wantStuck time.Duration
	}{
		{"as long as may be", `{"task_id":"t1"}`, 50 * time.Second, 50 * time.Second},
		{"longer than may be", `{"task_id":"t1","timeout_seconds":3600}`, 50 * time.Second, 50 * time.Second},
		{"as long as wanted", `{"task_id":"t1","timeout_seconds":7.5}`, 7500 * time.Millisecond, 7500 * time.Millisecond},
		{"until it has looked once", `{"task_id":"t1","timeout_seconds":0}`, 0, 5 * time.Second},
	} {
		for _, stuck := range []bool{false, true} {
			want := c.want
			if stuck {
				want = c.wantStuck
			}
			t.Run(c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					freed := make(chan struct{})
					box := empty(t)
					box.Read = func(_ context.Context, do func(*client.Client) error) error {
						if stuck {
							<-freed // a disk that does not answer knows no context
						}
						return do(runningTask())
					}
					e := connect(t, "", box, mcpserver.Options{}, nil)
					began := time.Now()
					answer, err := e.call(t.Context(), "wait_result", c.arguments)
					if took := time.Since(began); err != nil || took != want || string(answer["finished"]) != "false" {
						t.Errorf("wait_result = %v, %v after %v; want it unfinished after %v", answer, err, took, want)
					}
					close(freed)
				})
			})
		}
	}
}

func TestAWaitOfNoTimeStillSaysWhatIsKnownOfTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := empty(t)
		box.Read = func(_ context.Context, do func(*client.Client) error) error {
			time.Sleep(time.Second) // a busy machine
			return do(runningTask())
		}
		e := connect(t, "", box, mcpserver.Options{}, nil)
		answer, err := e.call(t.Context(), "wait_result", `{"task_id":"t1","timeout_seconds":0}`)
		if err != nil || string(answer["state"]) != `"running"` {
			t.Errorf("wait_result = %v, %v; want the task running", answer, err)
		}
	})
}

func TestAWaitSaysNowAndThenThatItGoesOn(t *testing.T) {
	for _, version := range versions {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var said []string
			box := empty(t)
			box.Read = func(_ context.Context, do func(*client.Client) error) error {
				return do(runningTask())
			}
			e := connect(t, version, box, mcpserver.Options{}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
					mu.Lock()
					defer mu.Unlock()
					said = append(said, r.Params.Message)
				},
			})
			params := &mcp.CallToolParams{Name: "wait_result", Arguments: map[string]any{"task_id": "t1", "timeout_seconds": 12}}
			params.SetProgressToken("p")
			if _, err := e.CallTool(t.Context(), params); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(said) != 2 || said[0] != "running: its agent is at work" {
				t.Errorf("%s: progress %q; want it twice in 12 s", version, said)
			}
		})
	}
}
