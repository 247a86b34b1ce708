package reader

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/route"
	"mailboxd/internal/decisions/task"
)

// Decisions returns the events about the choice of a task's agent, the oldest first.
func (r *Reader) Decisions(ctx context.Context, id envelope.ID) (all []client.Event, err error) {
	err = r.Events(ctx, EventQuery{Task: id}, func(e client.Event) error {
		if e.Kind == task.KindRoutingDecided || e.Kind == task.KindRoutingFailed {
			all = append(all, e)
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		err = exit.With(exit.Failed, "no agent was chosen for %s: it names its agent, or still waits", id)
	}
	return all, err
}

// LastDecision returns the latest decision about a task: of now, if it waits for one and the
// daemon runs.
func (r *Reader) LastDecision(ctx context.Context, id envelope.ID) (route.Record, error) {
	if now, err := r.Client.RouteOf(ctx, id); err == nil {
		return route.ReadRecord(now)
	}
	all, err := r.Decisions(ctx, id)
	if err != nil {
		return route.Record{}, err
	}
	return route.ReadRecord(all[len(all)-1].Data)
}

// A Replay is a recorded decision that was made again.
type Replay struct {
	Seq      int64     `json:"seq"`
	Time     time.Time `json:"time"`
	Selected string    `json:"selected"`
	Equal    bool      `json:"equal"`
	Why      string    `json:"why,omitzero"` // it is not
}

// ReplayDecisions makes the recorded decisions about a task again, from their inputs.
func (r *Reader) ReplayDecisions(ctx context.Context, id envelope.ID) (all []Replay, err error) {
	events, err := r.Decisions(ctx, id)
	for _, e := range events {
		replay := Replay{Seq: e.Seq, Time: e.Time}
		record, err := route.ReadRecord(e.Data)
		if err == nil {
			replay.Selected = record.Selected
			_, err = record.Again()
		}
		if replay.Equal = err == nil; err != nil {
			replay.Why = err.Error()
		}
		all = append(all, replay)
	}
	return all, err
}

// String describes a replay.
func (r Replay) String() string {
	selected := cmp.Or(term.OneLine(r.Selected), "no agent")
	if r.Equal {
		return fmt.Sprintf("%s  %s: the inputs give the same decision", term.Stamp(r.Time), selected)
	}
	return fmt.Sprintf("%s  %s: differs: %s", term.Stamp(r.Time), selected, term.OneLine(r.Why))
}

// A RouteTest is what a made-up task needs of its agent.
type RouteTest struct {
	To       string // an agent, or group:NAME; "": any
	Requires []string
	Prefers  []string
	Tools    []string
	Sandbox  bool
	Network  string
}

// Line returns the task line of a test.
func (q RouteTest) Line(sender string, now time.Time) (string, error) {
	policy := map[string]any{}
	if q.Sandbox {
		policy["sandbox"] = true
	}
	if q.Tools != nil {
		policy["tool_allowlist"] = q.Tools
	}
	if q.Network != "" {
		policy["network"] = q.Network
	}
	to := []any{}
	if q.To != "" {
		to = append(to, map[string]any{"agent_id": addressOf(q.To)})
	}
	text, err := json.Marshal(map[string]any{
		"v": "clutch/0.1", "id": "route-test", "ts": now.UTC().Format(time.RFC3339), "thread_id": "route-test", "run_id": "route-test",
		"task_id": "route-test", "from": map[string]any{"agent_id": "agent:" + sender}, "to": to, "type": "task.request",
		"payload": map[string]any{"title": "route test"}, "requires": nonNil(q.Requires), "prefers": nonNil(q.Prefers),
		"security": map[string]any{"policy": policy},
	}, json.Deterministic(true))
	if err != nil {
		return "", fmt.Errorf("write task line: %w", err)
	}
	return string(jsontext.Value(text)), nil
}

// addressOf returns the address of an agent or a group in Clutch.
func addressOf(name string) string {
	const group = "group:"
	if len(name) > len(group) && name[:len(group)] == group {
		return name
	}
	return "agent:" + name
}

func nonNil(list []string) []string { return append([]string{}, list...) }

// Read returns the task line of a file, or that of the test without a file; - is in.
func (q RouteTest) Read(in io.Reader, file, sender string, now time.Time) (string, error) {
	if file == "" {
		return q.Line(sender, now)
	}
	if file == "-" {
		text, err := io.ReadAll(in)
		return string(text), err
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

// PrintReplays prints decisions that were made again. It fails if one of them differs.
func PrintReplays(w io.Writer, all []Replay, asJSON bool) error {
	differ := 0
	for _, replay := range all {
		if !replay.Equal {
			differ++
		}
		var err error
		if asJSON {
			err = term.PrintJSON(w, replay)
		} else {
			_, err = fmt.Fprintln(w, replay)
		}
		if err != nil {
			return err
		}
	}
	if differ > 0 {
		return exit.With(exit.Failed, "%d of %d decisions differ", differ, len(all))
	}
	return nil
}
