package api_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"mailboxd/dispatch"
	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/access/api"
	"mailboxd/internal/access/client"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

// A fixture is a daemon without the program around it.
type fixture struct {
	*client.Client
	memory   *ledger.Ledger
	server   *api.Server
	location client.SocketPath
	stop     func() // the daemon; it returns when that has stopped
}

// stranger is no part of any run.
func stranger(int) (string, error) { return "", nil }

// open opens a server that asks runOf which process is part of a run. Its agent works
// until it is ended.
func open(t testing.TB, runOf func(int) (string, error)) *fixture {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "run"), runOf)
}

func openAt(t testing.TB, dir string, runOf func(int) (string, error)) *fixture {
	t.Helper()
	return openWith(t, dir, api.Options{RunOf: runOf, Approvers: func(int) []string { return nil }})
}

// openWith opens a server whose control socket is in dir.
func openWith(t testing.TB, dir string, opts api.Options) *fixture {
	t.Helper()
	parts := places(t)
	d, err := dispatch.Open(t.Context(), parts, agents(), store.Options{Workers: 2, Queue: 9000, Grace: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	location := client.SocketPath{Dir: dir, Name: "x.sock"}
	opts.SocketPaths, opts.Version, opts.Recheck = []client.SocketPath{location}, "test", 5*time.Millisecond
	opts.Survivors = func(string) ([]task.Survivor, error) { return []task.Survivor{{PID: 7, Command: "sh"}}, nil }
	opts.Proofs = func() proof.Approvers { return proof.Approvers{} }
	opts.Reload = func() client.ConfigDiff { return client.ConfigDiff{File: "read again"} }
	server, err := api.Open(t.Context(), d, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var serving errgroup.Group
	serving.Go(func() error { return d.Serve(ctx) })
	serving.Go(func() error { return server.Serve(ctx) })
	h := &fixture{memory: parts.Ledger, server: server, location: location}
	h.stop = func() {
		stop()
		if err := serving.Wait(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		h.stop()
		if err := errors.Join(server.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	})
	if h.Client, err = client.Open(t.Context(), location); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Client.Close() })
	return h
}

func places(t testing.TB) store.Parts {
	t.Helper()
	dir := t.TempDir()
	box, err := mailbox.Open(filepath.Join(dir, "box"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	state, err := mailbox.OpenState(filepath.Join(dir, "state"), box.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { state.Close() })
	memory, _, err := ledger.Open(state.LedgerPath())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	return store.Parts{Box: box, State: state, Ledger: memory}
}

// agents are one agent for everything, which works until it is ended.
func agents() store.Agents {
	work := func(ctx context.Context, j task.Job) task.Outcome {
		<-ctx.Done()
		return task.Outcome{
			Result: envelope.Result{TaskID: j.Task.ID, AgentID: "a", Status: envelope.Failed},
			Exit:   task.Exit{Cause: task.CauseInterrupted},
		}
	}
	return store.Agents{
		Judge: func(envelope.Task, time.Time) task.Verdict { return task.Verdict{Admit: true} },
		Run: func(ctx context.Context, j task.Job, _ func(runner.Process)) task.Outcome {
			return work(ctx, j)
		},
		Recover: work,
		Refs:    func(string) store.RefRule { return store.RefRule{} },
		HasDir:  func(string) bool { return false },
		Limit:   func(string) int { return 9 },
		Reruns:  func(string) bool { return true },
		Retries: func(string) int { return 0 },
		Backoff: func(string) time.Duration { return time.Second },
		Known:   func(agent string) bool { return agent == "a" },
		Mode:    func(envelope.Control) envelope.Mode { return envelope.Enforce },
		Inbox:   func(agent string) store.Inbox { return inboxes[agent] },
		Answer:  answer,
	}
}

// inboxes are where the agents of a fixture fetch their tasks.
var inboxes = map[string]store.Inbox{"editor": {File: "agents/editor/inbox.jsonl", Lease: time.Hour}}

// answer takes anything with a summary for an answer.
func answer(j task.Job, said []byte, exit task.Exit) (task.Outcome, error) {
	r, _ := envelope.DecodeAnswer(said)
	if r.Output.Summary == "" {
		return task.Outcome{}, errors.New("it has no summary")
	}
	r.TaskID, r.AgentID, r.Status = j.Task.ID, j.Task.Agent, envelope.OK
	return task.Outcome{Result: r, Exit: exit}, nil
}

// remember writes tasks down as they were held before the daemon came.
func (h *fixture) remember(t *testing.T, ids ...string) {
	t.Helper()
	h.rememberFor(t, "a", ids...)
}

func (h *fixture) rememberFor(t *testing.T, agent string, ids ...string) {
	t.Helper()
	err := h.memory.Update(t.Context(), func(tx *ledger.Tx) error {
		for _, id := range ids {
			row := task.Task{
				ID: envelope.ID(id), Revision: 1, State: task.Held, Reasons: []task.Reason{task.Operator},
				Hash: id, Dialect: "ainl", Agent: agent, Requester: "r", Received: time.Now(),
			}
			if _, err := tx.Add(row, line(id)); err != nil {
				return err
			}
			if err := tx.Log(task.Event{Time: time.Now(), Kind: "task.accepted", Task: row.ID, Revision: 1}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func line(id string) []byte {
	return fmt.Appendf(nil, `{"schema_version":"1.0","task_id":%q,"requester_id":"r","target_agent":"a","target_role":"executor",`+
		`"task_type":"work","description":"d","input":{"refs":[],"payload":{}}}`, id)
}

// kindOf is the kind of error that a daemon answered with; "" for none.
func kindOf(err error) string {
	said, ok := errors.AsType[*client.Error](err)
	if !ok {
		return ""
	}
	return said.Kind
}
