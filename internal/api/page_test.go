package api_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/client"
)

func TestTheDaemonJudgesWhoAsksThePage(t *testing.T) {
	other := startAt(t, nil)
	h := open(t, func(pid int) (string, error) {
		if pid == other.Pid {
			return "it is a process of the run of t1", nil
		}
		return "", nil
	})
	for name, c := range map[string]struct {
		request client.PageRequest
		want    string
	}{
		"a person":         {client.PageRequest{PID: os.Getpid(), Request: "GET /"}, ""},
		"a run":            {client.PageRequest{PID: other.Pid, Request: "GET /run"}, "it is a process of the run of t1"},
		"nobody":           {client.PageRequest{Request: "GET /nobody"}, "it is gone"},
		"a run again":      {client.PageRequest{PID: other.Pid, Request: "GET /again", Quiet: true}, "it is a process of the run of t1"},
		"a foreign host":   {client.PageRequest{PID: os.Getpid(), Request: "GET /host", Refused: "its host is x"}, "its host is x"},
		"a gone process":   {client.PageRequest{PID: 1 << 22, Request: "GET /gone"}, "it is gone"},
		"a broken request": {client.PageRequest{Request: "GET /\xff" + strings.Repeat("x", 900), Refused: "because"}, "because"},
	} {
		v, err := h.JudgePage(t.Context(), c.request)
		if name == "a broken request" && err != nil {
			continue // it is not JSON
		}
		if err != nil || (v.Refused == "") != (c.want == "") || !strings.Contains(v.Refused, c.want) {
			t.Errorf("%s: %+v, %v; want %q", name, v, err, c.want)
		}
	}
	var seen []string
	events, err := h.Events(t.Context(), "", 0, 100)
	for _, e := range events {
		if e.Kind == "control.refused" {
			seen = append(seen, string(e.Data))
		}
	}
	all := strings.Join(seen, "\n")
	for _, want := range []string{"GET /run", "GET /nobody", "GET /host", "GET /gone", `"verb":"page"`} {
		if err != nil || !strings.Contains(all, want) {
			t.Errorf("events %s, %v; want one with %s", all, err, want)
		}
	}
	if strings.Contains(all, `"GET /:`) || strings.Contains(all, "GET /again") {
		t.Errorf("the person, or a request that is not to be recorded, is in %s", all)
	}
}

func TestARunServesNoPage(t *testing.T) {
	h := open(t, func(int) (string, error) { return "it is a process of a run", nil })
	_, err := h.JudgePage(t.Context(), client.PageRequest{PID: os.Getpid(), Request: "GET /"})
	if said, ok := errors.AsType[*client.Error](err); !ok || said.Kind != client.Forbidden {
		t.Errorf("JudgePage = %v; want %s", err, client.Forbidden)
	}
}

func TestTheRequestOfARevisionIsKept(t *testing.T) {
	h := open(t, stranger)
	h.remember(t, "t1")
	if raw, err := h.Request(t.Context(), "t1", 0); err != nil || !strings.Contains(string(raw), `"t1"`) {
		t.Errorf("Request = %s, %v; want that of t1", raw, err)
	}
	for id, revision := range map[string]int{"t1": 7, "t2": 0} {
		_, err := h.Request(t.Context(), envelope.ID(id), revision)
		if said, ok := errors.AsType[*client.Error](err); !ok || said.Kind != client.NoTask {
			t.Errorf("Request(%s, %d) = %v; want %s", id, revision, err, client.NoTask)
		}
	}
}
