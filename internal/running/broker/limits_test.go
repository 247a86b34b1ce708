package broker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/broker"
)

func TestARunMakesAsManyCallsAsItMayAndNoMore(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	var calling sync.WaitGroup
	var made atomic.Int32
	for range broker.DefaultLimit + 5 {
		calling.Go(func() {
			if text, failed := r.call("echo"); !failed {
				made.Add(1)
			} else if want := "mailboxd: stub__echo: a run may make 50 calls, and has made them"; text != want {
				t.Errorf("a call failed with %q; want %q", text, want)
			}
		})
	}
	calling.Wait()
	if made.Load() != 50 || len(r.recorded("called")) != 50 || len(r.recorded("refused")) != 5 {
		t.Errorf("%d calls were made; the record has %d, and %d refused; want 50, 50 and 5",
			made.Load(), len(r.recorded("called")), len(r.recorded("refused")))
	}
	r.wantFailure("echo", "refused", "a run may make 50 calls")
}

func TestACallOfAServerThatHangsFailsInItsTimeAndEndsTheServer(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *broker.Config) { c.Timeout = task.Duration(2 * time.Second) }) // a busy machine answers in it
	r.wantFailure("hangs", "called", "the server stub did not answer the call, which isn't made again", "it took longer than 2s")
	if err := syscall.Kill(r.starts()[0], 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the server that hangs is still there: %v", err)
	}
	r.wantEcho()
}

func TestAServerThatFloodsItsStandardErrorStillAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	if text, failed := r.call("floods"); failed || text != "flooded" {
		t.Errorf("floods returned %.500q; want its answer", text)
	}
	text := r.wantFailure("drowns", "called", "the server stub did not answer the call", "its standard error ends with: ")
	if !strings.HasSuffix(text, "last words") || len(text) > 10_000 {
		t.Errorf("the agent got %d bytes that end with %q; want a few with the last words", len(text), text[max(0, len(text)-100):])
	}
}

func TestAServerThatSendsBrokenFramesFailsThatCallAlone(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"garbles", "mumbles", "stretches"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.wantEcho()
			r.wantFailure(tool, "called", "the server stub did not answer the call, which isn't made again")
			r.wantEcho()
			if n := len(r.starts()); n != 2 {
				t.Errorf("the server was started %d times; want twice", n)
			}
		})
	}
}

func TestAServerThatSpeaksNoMCPIsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *broker.Config) {
		c.Servers[0].Service.Command = []string{"/bin/sh", "-c", "echo Usage: server; echo wrong option >&2; exec cat >/dev/null"}
	})
	r.wantFailure("echo", "refused", "the server stub can't be used: ", "wrong option")
}

func TestAServerThatEndsAgainAndAgainIsStartedSixTimesAMinute(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for range 6 {
		r.wantFailure("dies", "called", "the server stub did not answer the call, which isn't made again", "last words")
	}
	r.wantFailure("dies", "refused", "the server stub can't be used: it was started 6 times in the last minute")
	if n := len(r.starts()); n != 6 {
		t.Errorf("the server was started %d times; want 6", n)
	}
}

func TestArgumentsOverOneMebibyteAreRefusedAndNotKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	const want = "mailboxd: stub__echo: the arguments have more than 1048576 bytes"
	if text, failed := r.callWith("echo", fmt.Sprintf(`{"a":%q}`, mebibyte)); !failed || text != want {
		t.Errorf("echo with too many arguments returned %.500q; want %q", text, want)
	}
	if refused := r.recorded("refused"); len(refused) != 1 || refused[0].Tool != "stub/echo" || !strings.HasSuffix(want, refused[0].Why) {
		t.Errorf("the record has %+v; want the call", refused)
	}
	if kept, err := os.ReadFile(filepath.Join(r.dir, broker.BodiesFile)); err != nil || len(kept) != 0 {
		t.Errorf("%d bytes of bodies are kept, %v; want none", len(kept), err)
	}
}

// request returns a call of the tool echo in the first version of the protocol, with an Authorization header.
func (r *rig) request(ctx context.Context, authorization string) *http.Request {
	r.t.Helper()
	body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stub__echo","arguments":{}}}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, body)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", authorization)
	return req
}

// post calls the tool, and returns the status.
func (r *rig) post(authorization string) int {
	r.t.Helper()
	resp, err := http.DefaultClient.Do(r.request(r.t.Context(), authorization))
	if err != nil {
		r.t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestACallThatItsProgramGaveUpIsNotMadeWhateverAPersonSays(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *broker.Config) { c.Calls = &task.CallRules{Otherwise: task.AskPerson} })
	ctx, giveUp := context.WithCancel(t.Context())
	var calling sync.WaitGroup
	calling.Go(func() {
		if resp, err := http.DefaultClient.Do(r.request(ctx, "Bearer token")); err == nil {
			resp.Body.Close()
		}
	})
	await(t, "the question", func() bool { return len(r.recorded("ask")) == 1 })
	giveUp()
	calling.Wait()
	await(t, "the refusal", func() bool { return len(r.recorded("refused")) == 1 })
	if why := r.recorded("refused")[0].Why; !strings.Contains(why, "the program doesn't wait for the answer any more") {
		t.Errorf("the call was refused since %s", why)
	}
}

// await waits for what a broker records.
func await(t *testing.T, what string, there func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !there(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s did not come in 30 s", what)
		}
	}
}

func TestARequestWithoutTheTokenOfTheRunStartsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, header := range []string{"", "Bearer ", "Bearer other", "token", "bearer token"} {
		if status := r.post(header); status != http.StatusUnauthorized {
			t.Errorf("a call with the header %q was answered %d; want 401", header, status)
		}
	}
	if _, err := os.Stat(filepath.Join(r.dir, "starts")); err == nil {
		t.Error("a call without the token started the server")
	}
	if status := r.post("Bearer token"); status != http.StatusOK || len(r.starts()) != 1 {
		t.Errorf("a call with the token was answered %d, and the server was started %d times; want 200 and once", status, len(r.starts()))
	}
}
