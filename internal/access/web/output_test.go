package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/access/client"
	"mailboxd/internal/access/web/live"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteString(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// A connection records what is written, as if its writes could have deadlines.
type connection struct{ *httptest.ResponseRecorder }

func (connection) SetWriteDeadline(time.Time) error { return nil }

func TestACharacterThatIsWrittenInPartsIsShownWhole(t *testing.T) {
	for _, name := range []string{runner.StdoutFile, runner.StderrFile} {
		dir, w := t.TempDir(), connection{httptest.NewRecorder()}
		stream := live.Begin(w, -1)
		tail := newOutputTail(dir, stream.Output("t1"))
		for _, part := range []string{"gr\xc3", "\xbcn\n"} {
			write(t, filepath.Join(dir, name), part)
			if err := tail.Copy(); err != nil {
				t.Fatal(err)
			}
		}
		if err := tail.Close(); err != nil {
			t.Fatal(err)
		}
		ended, stop := context.WithCancel(t.Context())
		stop()
		if err := stream.Serve(ended); err != nil {
			t.Fatal(err)
		}
		if text := w.Body.String(); !strings.Contains(text, "ü") || strings.Contains(text, "\uFFFD") {
			t.Errorf("%s is shown as %q; want one ü", name, text)
		}
	}
}

func TestTheDaemonIsNotAskedForEachPartOfAnOutput(t *testing.T) {
	asked, now := 0, time.Now()
	ended := rarely(func() time.Time { return now }, func() bool { asked++; return asked == 2 })
	for _, c := range []struct {
		after time.Duration
		ended bool
		asked int
	}{{0, false, 1}, {10 * time.Millisecond, false, 1}, {askGap, true, 2}} {
		now = now.Add(c.after)
		if got := ended(); got != c.ended || asked != c.asked {
			t.Errorf("after %s: %t, asked %d times; want %t, %d times", c.after, got, asked, c.ended, c.asked)
		}
	}
}

// An oldLedger answers for a ledger whose events are all old.
type oldLedger struct {
	events []client.Event
	read   int // how many events were asked for in pages
}

func (o *oldLedger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/status") {
		_ = json.MarshalWrite(w, client.Status{LastEvent: int64(len(o.events))})
		return
	}
	after, _ := strconv.Atoi(r.URL.Query().Get("after"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	rest := o.events[min(after, len(o.events)):]
	rest = rest[:min(len(rest), limit)]
	if limit > 1 {
		o.read += len(rest)
	}
	_ = json.MarshalWrite(w, client.EventList{Events: rest})
}

func TestOldEventsAreNotReadForTheLastHour(t *testing.T) {
	now := time.Now()
	old := &oldLedger{}
	for i := range 1000 {
		old.events = append(old.events, client.Event{Seq: int64(i) + 1, Kind: task.KindTaskFinished, Time: now.Add(-24 * time.Hour)})
	}
	var a activity
	for range 3 {
		if _, ok, failed, err := a.chart(t.Context(), &reader.Reader{Client: client.Within(old)}, now); err != nil || ok+failed != 0 {
			t.Errorf("chart = %d, %d, %v; want nothing in the last hour", ok, failed, err)
		}
	}
	if old.read > 0 {
		t.Errorf("%d events of yesterday were read", old.read)
	}
}
