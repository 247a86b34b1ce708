package api_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
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

// The daemon knows neither the cookies nor the links of the page, so it records nothing that looks
// like one, and no argument of a command.
func TestNoSecretOfARefusedCallerIsRecorded(t *testing.T) {
	const cookie = "CANARYcookieCANARYcookieCANARYcookie-_12345"
	thief := exec.Command("sh", "-c", "sleep 60; :", "-b", "mbx-40213="+cookie)
	thief.Stdin = strings.NewReader(cookie)
	if err := thief.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = thief.Process.Kill(), thief.Wait() }()
	h := open(t, func(pid int) (string, error) {
		if pid == thief.Process.Pid {
			return "it is a process of the run of t1", nil
		}
		return "", nil
	})
	for _, r := range []client.PageRequest{
		{PID: thief.Process.Pid, Request: "GET /events"},
		{PID: thief.Process.Pid, Request: "GET /" + cookie},
		{PID: os.Getpid(), Request: "POST /session", Refused: "its host is \"" + cookie + ".localhost\""},
	} {
		if v, err := h.JudgePage(t.Context(), r); err != nil || v.Refused == "" {
			t.Errorf("JudgePage(%+v) = %+v, %v; want it refused", r, v, err)
		}
	}
	events, err := h.Events(t.Context(), "", 0, 100)
	all := ""
	for _, e := range events {
		all += string(e.Data) + "\n"
	}
	if err != nil || !strings.Contains(all, fmt.Sprintf("process %d (sh)", thief.Process.Pid)) || !strings.Contains(all, "GET /(redacted)") {
		t.Errorf("events %s, %v; want the program and the requests without secrets", all, err)
	}
	if strings.Contains(all, "CANARY") {
		t.Errorf("an event has a secret: %s", all)
	}
}

// The sessions of an older build end: their cookies could have been recorded.
func TestThePageOfAnOlderBuildIsRefused(t *testing.T) {
	h := open(t, stranger)
	raw := h.raw()
	defer raw.CloseIdleConnections()
	response, err := raw.Post("http://mailboxd"+client.Base+"/page", "application/json", strings.NewReader(fmt.Sprintf(`{"pid":%d,"request":"GET /"}`, os.Getpid())))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(text), "start mailboxd web again") {
		t.Errorf("POST /v1/page without a protocol = %d %s, %v; want it refused with what to do", response.StatusCode, text, err)
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
