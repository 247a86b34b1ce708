package api_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/access/api"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

func (h *fixture) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return h.location.Dial(ctx)
}

func TestATaskIsSteered(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "t1", "t2")
	ctx := t.Context()
	if got, err := h.Release(ctx, "t1", client.ControlOptions{Reason: "go"}); err != nil || got.ID != "t1" || slices.Contains(got.Held, "operator") {
		t.Errorf("Release = %+v, %v; want t1 without the operator's hold", got, err)
	}
	if _, err := h.Release(ctx, "t1", client.ControlOptions{}); kindOf(err) != client.Conflict {
		t.Errorf("Release again = %v; want %s", err, client.Conflict)
	}
	if got, err := h.Cancel(ctx, "t1", client.ControlOptions{}); err != nil || got.Status != envelope.Stopped {
		t.Errorf("Cancel = %+v, %v; want it cancelled", got, err)
	}
	if _, err := h.Retry(ctx, "nobody", client.ControlOptions{}); kindOf(err) != client.NoTask {
		t.Errorf("Retry(nobody) = %v; want %s", err, client.NoTask)
	}
	if got, err := h.Pause(ctx, client.AgentOptions{Agent: "a"}); err != nil || !slices.Equal(got.Paused, []string{"a"}) {
		t.Errorf("Pause = %+v, %v; want a paused", got, err)
	}
	if got, err := h.Drain(ctx, client.AgentOptions{}); err != nil || !slices.Equal(got.Paused, []string{"", "a"}) {
		t.Errorf("Drain = %+v, %v; want all paused", got, err)
	}
	if got, err := h.Resume(ctx, client.AgentOptions{Agent: "a"}); err != nil || !slices.Equal(got.Paused, []string{""}) {
		t.Errorf("Resume = %+v, %v; want all but a's pause", got, err)
	}
	if _, err := h.Drain(ctx, client.AgentOptions{Agent: "b"}); kindOf(err) != client.BadRequest {
		t.Errorf("Drain(b) = %v; want %s, for there is no b", err, client.BadRequest)
	}
	events, err := h.Events(ctx, "t1", 0, 9)
	if err != nil || !slices.ContainsFunc(events, func(e client.Event) bool { return strings.Contains(string(e.Data), `"reason":"go"`) }) {
		t.Errorf("Events = %+v, %v; want the reason in one", events, err)
	}
}

func TestATaskIsCancelledWithThoseBelowIt(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "t1")
	err := h.memory.Update(t.Context(), func(tx *ledger.Tx) error {
		top, _, err := tx.Task(1)
		if err != nil {
			return err
		}
		_, err = tx.Add(task.Task{
			ID: "below", Revision: 1, State: task.Held, Reasons: []task.Reason{task.Operator}, Hash: "below",
			Dialect: "ainl", Agent: "a", Requester: "a", Received: time.Now(), Parent: top.Seq, Depth: 1,
		}, line("below"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if open, err := h.OpenBelow(ctx, "t1"); err != nil || len(open) != 1 || open[0].ID != "below" || open[0].State != task.Held {
		t.Errorf("OpenBelow = %+v, %v; want below, held", open, err)
	}
	tree, err := h.CancelTree(ctx, "t1", client.ControlOptions{Reason: "enough"})
	if err != nil || tree.Task.Status != envelope.Stopped || len(tree.Cancelled) != 1 || tree.Cancelled[0].Status != envelope.Stopped {
		t.Errorf("CancelTree = %+v, %v; want both cancelled", tree, err)
	}
	if open, err := h.OpenBelow(ctx, "t1"); err != nil || len(open) > 0 {
		t.Errorf("OpenBelow = %+v, %v; want none", open, err)
	}
	if _, err := h.CancelTree(ctx, "t1", client.ControlOptions{}); kindOf(err) != client.Conflict {
		t.Errorf("CancelTree again = %v; want %s", err, client.Conflict)
	}
	if _, err := h.OpenBelow(ctx, "nobody"); kindOf(err) != client.NoTask {
		t.Errorf("OpenBelow(nobody) = %v; want %s", err, client.NoTask)
	}
}

func TestWhatIsBegunAndNotOverInTimeIsSaidSo(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "t1")
	if _, err := h.Release(t.Context(), "t1", client.ControlOptions{}); err != nil {
		t.Fatal(err)
	}
	err := h.Follow(t.Context(), "t1", 0, func(e client.Event) error {
		if e.Kind == "task.started" {
			return errSeen
		}
		return nil
	})
	if !errors.Is(err, errSeen) {
		t.Fatal(err)
	}
	if _, err := h.Drain(t.Context(), client.AgentOptions{Timeout: "1ms"}); kindOf(err) != client.Unfinished {
		t.Errorf("Drain = %v; want %s", err, client.Unfinished)
	}
	_, err = h.Cancel(t.Context(), "t1", client.ControlOptions{Timeout: "1ns"})
	if kindOf(err) != client.Unfinished || !strings.HasSuffix(err.Error(), "what is left of it: process 7 (sh)") {
		t.Errorf("Cancel = %v; want it unfinished, and what is left", err)
	}
}

var errSeen = errors.New("seen")

// verbs are all requests that change something.
var verbs = map[string]func(*client.Client, context.Context) error{
	"hold": func(c *client.Client, ctx context.Context) error {
		return second(c.Hold(ctx, "t1", client.ControlOptions{}))
	},
	"release": func(c *client.Client, ctx context.Context) error {
		return second(c.Release(ctx, "t1", client.ControlOptions{}))
	},
	"cancel": func(c *client.Client, ctx context.Context) error {
		return second(c.Cancel(ctx, "t1", client.ControlOptions{}))
	},
	"cancel-tree": func(c *client.Client, ctx context.Context) error {
		return second(c.CancelTree(ctx, "t1", client.ControlOptions{}))
	},
	"retry": func(c *client.Client, ctx context.Context) error {
		return second(c.Retry(ctx, "t1", client.ControlOptions{}))
	},
	"pause":  func(c *client.Client, ctx context.Context) error { return second(c.Pause(ctx, client.AgentOptions{})) },
	"resume": func(c *client.Client, ctx context.Context) error { return second(c.Resume(ctx, client.AgentOptions{})) },
	"approve": func(c *client.Client, ctx context.Context) error {
		return second(c.Approve(ctx, "t1", client.Decision{Unseen: true}))
	},
	"deny": func(c *client.Client, ctx context.Context) error {
		return second(c.Deny(ctx, "t1", client.Decision{Note: "no"}))
	},
	"reload": func(c *client.Client, ctx context.Context) error { return second(c.Reload(ctx)) },
	"drain":  func(c *client.Client, ctx context.Context) error { return second(c.Drain(ctx, client.AgentOptions{})) },
}

func second[T any](_ T, err error) error { return err }

func TestAnAgentSteersNothingAndItIsRemembered(t *testing.T) {
	for name, runOf := range map[string]func(int) (string, error){
		"an agent":               func(int) (string, error) { return "it has the mark of a run", nil },
		"who cannot be told yet": func(int) (string, error) { return "", errors.New("it is gone") },
	} {
		h := open(t, runOf)
		h.remember(t, "t1")
		for verb, do := range verbs {
			if err := do(h.Client, t.Context()); kindOf(err) != client.Forbidden {
				t.Errorf("%s of %s = %v; want %s", verb, name, err, client.Forbidden)
			}
		}
		if row, err := h.Latest(t.Context(), "t1"); err != nil || row.State != "held" {
			t.Errorf("t1 is %s, %v; want it held still", row.State, err)
		}
		events, err := h.Events(t.Context(), "", 0, 99)
		refused := slices.DeleteFunc(events, func(e client.Event) bool { return e.Kind != "control.refused" && e.Kind != "approval.refused" })
		if err != nil || len(refused) != len(verbs) {
			t.Errorf("%d refusals of %s are remembered, %v; want %d", len(refused), name, err, len(verbs))
		}
		if want := fmt.Sprintf(`"process %d (`, os.Getpid()); !strings.Contains(string(refused[0].Data), want) {
			t.Errorf("refusal %s; want who it was", refused[0].Data)
		}
	}
}

// TestEveryChangeIsGuarded walks all routes there are: a new one that changes
// something has to refuse an agent as well.
func TestEveryChangeIsGuarded(t *testing.T) {
	h := open(t, func(int) (string, error) { return "an agent", nil })
	h.remember(t, "t1")
	for _, path := range api.Changing() {
		response, err := h.raw().Post("http://x/v1"+strings.ReplaceAll(path, "{id}", "t1"), "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("POST %s = %s; want 403", path, response.Status)
		}
	}
}

func TestARequestThatCannotBeUnderstoodChangesNothing(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "t1")
	for body, want := range map[string]int{
		`{"reason":1}`:                     http.StatusBadRequest,
		`{"raeson":"x"}`:                   http.StatusBadRequest,
		`{"reason":"x","reason":"y"}`:      http.StatusBadRequest,
		`{"timeout":"soon"}`:               http.StatusBadRequest,
		`{`:                                http.StatusBadRequest,
		"{\"reason\":\"\xff\"}":            http.StatusBadRequest,
		strings.Repeat(" ", 100_000) + "{": http.StatusBadRequest,
	} {
		response, err := h.raw().Post("http://x/v1/tasks/t1/release", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("release with %.20q = %s; want %d", body, response.Status, want)
		}
	}
	for path, want := range map[string]int{
		"/v1/nothing": http.StatusNotFound, "/v2/status": http.StatusNotFound, "/v1/tasks/..%2fx/hold": http.StatusBadRequest,
	} {
		response, err := h.raw().Post("http://x"+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("POST %s = %s; want %d", path, response.Status, want)
		}
	}
	if row, err := h.Latest(t.Context(), "t1"); err != nil || row.State != "held" {
		t.Errorf("t1 is %s, %v; want it held still", row.State, err)
	}
}

// TestWhoConnectedAndIsGoneMayNothing: the connection is handed on by a process
// that has ended, so nobody can tell what it was.
func TestWhoConnectedAndIsGoneMayNothing(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "t1")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	socket := os.NewFile(uintptr(fd), "socket")
	defer socket.Close()
	child := exec.Command("/proc/self/exe")
	child.Env = append(os.Environ(), connects+"="+h.location.Name)
	child.Dir, child.ExtraFiles, child.Stderr = h.location.Dir, []*os.File{socket}, os.Stderr
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	gone := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.FileConn(socket)
	}}}
	response, err := gone.Post("http://x/v1/tasks/t1/release", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("release by who is gone = %s; want 403", response.Status)
	}
}
