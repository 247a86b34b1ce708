package api_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/api"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/operating/metrics"
)

// tableOf is a table of two runners that writes what is asked of it to calls.
func tableOf(calls *[]string) api.RunnerTable {
	note := func(words ...string) error {
		*calls = append(*calls, strings.Join(words, " "))
		return nil
	}
	return api.RunnerTable{
		List: func() []client.Runner {
			return []client.Runner{
				{Name: "gpu-2", Status: client.RunnerUnavailable, Reason: "wrong key", Next: "enroll it again"},
				{Name: "gpu-1", Status: client.RunnerBusy, Slots: 2, Running: 2, Seen: time.Unix(1e9, 0)},
			}
		},
		Drain: func(_ context.Context, name string, on bool, _ core.By) error {
			return note(map[bool]string{true: "drain", false: "resume"}[on], name)
		},
		Remove:  func(_ context.Context, name string, _ core.By) error { return note("remove", name) },
		Abandon: func(context.Context, envelope.ID, core.By) error { return errors.New("its runner can be reached") },
	}
}

func TestRunnersAreListedByNameAndChanged(t *testing.T) {
	var calls []string
	h := openWith(t, filepath.Join(t.TempDir(), "run"), api.Options{RunOf: stranger, Runners: tableOf(&calls)})
	ctx := t.Context()
	all, err := h.Runners(ctx)
	if err != nil || len(all) != 2 || all[0].Name != "gpu-1" || all[1].Next != "enroll it again" {
		t.Errorf("Runners = %+v, %v", all, err)
	}
	for _, do := range []func(context.Context, string, client.ControlOptions) (client.Runners, error){
		h.DrainRunner, h.ResumeRunner, h.RemoveRunner,
	} {
		if after, err := do(ctx, "gpu-1", client.ControlOptions{}); err != nil || len(after.Runners) != 2 {
			t.Errorf("got %+v, %v; want the runners", after, err)
		}
	}
	if got := strings.Join(calls, ", "); got != "drain gpu-1, resume gpu-1, remove gpu-1" {
		t.Errorf("calls %s", got)
	}
	_, err = h.DrainRunner(ctx, "../x", client.ControlOptions{})
	if kindOf(err) != client.BadRequest || !strings.Contains(err.Error(), "mailboxd runners lists them") {
		t.Errorf("an unknown runner gives %v", err)
	}
	if _, err := h.Abandon(ctx, "t1", client.ControlOptions{}); err == nil || !strings.Contains(err.Error(), "its runner can be reached") {
		t.Errorf("Abandon = %v; want what the table says", err)
	}
}

func TestAnAgentChangesNoRunner(t *testing.T) {
	var calls []string
	h := openWith(t, filepath.Join(t.TempDir(), "run"),
		api.Options{RunOf: func(int) (string, error) { return "it is part of a run", nil }, Runners: tableOf(&calls)})
	if _, err := h.DrainRunner(t.Context(), "gpu-1", client.ControlOptions{}); kindOf(err) != client.Forbidden {
		t.Errorf("drain by an agent = %v; want %s", err, client.Forbidden)
	}
	if _, err := h.Abandon(t.Context(), "t1", client.ControlOptions{}); kindOf(err) != client.Forbidden {
		t.Errorf("abandon by an agent = %v; want %s", err, client.Forbidden)
	}
	if len(calls) > 0 {
		t.Errorf("calls %v; want none", calls)
	}
}

func TestRunnersHaveMetrics(t *testing.T) {
	var calls []string
	h := openWith(t, filepath.Join(t.TempDir(), "run"), api.Options{RunOf: stranger, Runners: tableOf(&calls)})
	families, err := h.server.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := metrics.Write(&text, families); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`mailboxd_runner_up{runner="gpu-1",status="busy"} 1`, `mailboxd_runner_up{runner="gpu-2",status="unavailable"} 0`,
		`mailboxd_runner_runs{runner="gpu-1"} 2`, `mailboxd_runner_seen_timestamp_seconds{runner="gpu-1"} 1e+09`,
	} {
		if !strings.Contains(text.String(), want+"\n") {
			t.Errorf("the metrics lack %s:\n%s", want, &text)
		}
	}
}
