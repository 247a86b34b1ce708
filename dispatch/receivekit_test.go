package dispatch_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/strict"
	"mailboxd/mailbox"
)

// say appends lines, and has them taken in together.
func (e *engine) say(lines ...string) {
	e.t.Helper()
	for _, line := range lines {
		_, _, err := mailbox.Append(e.parts.Box.Path(), []byte(line))
		e.must(err)
	}
	e.Look(e.t.Context())
}

// A word is a message of CLowl's, of which a test says what matters.
type word struct {
	mid, p, from, to string
	pid, t, d, more  string
}

// line is the message as it is in a mailbox.
func (w word) line() string {
	to := w.to
	if !strings.HasPrefix(to, "[") {
		to = fmt.Sprintf("%q", to)
	}
	pid := ""
	if w.pid != "" {
		pid = fmt.Sprintf(`"pid":%q,`, w.pid)
	}
	if w.t == "" {
		w.t = "work"
	}
	if w.d == "" {
		w.d = "{}"
	}
	return fmt.Sprintf(`{"clowl":"0.2","mid":%q,"ts":1709078400,"tid":"t1",%s"p":%q,"from":%q,"to":%s,"cid":"c1","body":{"t":%q,"d":%s}%s}`,
		w.mid, pid, w.p, w.from, to, w.t, w.d, w.more)
}

// req is a request of CLowl's.
func req(mid, to string) string { return word{mid: mid, p: "REQ", from: "ann", to: to}.line() }

// capLine is a message of CAP's. Its words are those of its type.
func capLine(kind, task, from, to, words string) string {
	of := map[string]string{"message": "content", "delegation_notice": "context_summary", "error_response": "error_message", "oversight_inquiry": "inquiry"}
	return fmt.Sprintf(`{"type":%q,"task_id":%q,"sender_id":%q,"recipient_id":%q,%q:%q}`, kind, task, from, to, of[kind], words)
}

// A letter is a line of an inbox, of either dialect.
type letter struct {
	P    string `json:"p"`
	MID  string `json:"mid"`
	PID  string `json:"pid"`
	From string `json:"from"`
	CID  string `json:"cid"`
	TID  string `json:"tid"`
	Body struct {
		T string `json:"t"`
		D struct {
			Code   string `json:"code"`
			Kind   string `json:"kind"`
			Msg    string `json:"msg"`
			Retry  *bool  `json:"retry"`
			State  string `json:"state"`
			Status string `json:"status"`
		} `json:"d"`
	} `json:"body"`
	Type   string `json:"type"`
	Sender string `json:"sender_id"`
	Task   string `json:"task_id"`
	Text   string `json:"content"`
	Code   int    `json:"error_code"`
	Error  string `json:"error_message"`
	line   string
}

// post returns what lies in the inbox of a participant.
func (e *engine) post(name string) (all []letter) {
	e.t.Helper()
	for _, line := range e.letters(name) {
		l := letter{line: line}
		e.must(json.Unmarshal([]byte(line), &l))
		all = append(all, l)
	}
	return all
}

// holdInboxes fails the test when an inbox is not as its protocols want it, line by
// line and as a sequence: all that we said to anybody.
func (e *engine) holdInboxes() {
	inboxes, err := filepath.Glob(filepath.Join(e.dir, "box", "agents", "*", "inbox.jsonl"))
	e.must(err)
	if len(inboxes) == 0 {
		return
	}
	sent := e.sent()
	for _, path := range inboxes {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // a test's own bad inbox
		}
		for line := range strings.Lines(string(text)) {
			if err := strict.Line([]byte(strings.TrimSuffix(line, "\n"))); err != nil {
				e.t.Errorf("%s has %s: %v", path, line, err)
			}
		}
		if err := strict.Sequence(filepath.Base(filepath.Dir(path)), sent, bytes.Split(bytes.TrimSpace(text), []byte("\n"))); err != nil {
			e.t.Errorf("%s has %v", path, err)
		}
	}
}

// sent returns what anybody said: the lines of tasks/, what agents said in their runs,
// and what a test put straight into the ledger.
func (e *engine) sent() (all [][]byte) {
	var files []string
	for _, pattern := range []string{"box/tasks/*", "state/sandboxes/tasks/*", "state/runs/*/*/" + mailbox.KeptTasks} {
		more, err := filepath.Glob(filepath.Join(e.dir, pattern))
		e.must(err)
		files = append(files, more...)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		e.must(err)
		if !strings.Contains(path, "/box/") { // the author is the run's agent, whatever a line says
			text = bytes.ReplaceAll(text, []byte(`"from":"ann"`), []byte(`"from":"chief"`))
		}
		all = append(all, bytes.Split(text, []byte("\n"))...)
	}
	reader, err := ledger.OpenReader(filepath.Join(e.dir, "state", "ledger.db"))
	e.must(err)
	defer reader.Close()
	tasks, err := reader.Tasks(context.Background(), ledger.Filter{All: true})
	e.must(err)
	for _, row := range tasks {
		raw, err := reader.Raw(context.Background(), row.Seq)
		e.must(err)
		all = append(all, raw)
		conv, _, err := reader.Conversation(context.Background(), row.Seq)
		e.must(err)
		about, err := reader.About(context.Background(), row.Seq)
		e.must(err)
		thread, err := reader.LinkedMessages(context.Background(), conv.Thread, "")
		e.must(err)
		for _, m := range append(about, thread...) {
			if m.Via != task.ByDaemon {
				all = append(all, m.Body)
			}
		}
	}
	return all
}

// gets waits until a participant has a letter that is a reply to a message, with
// some performative or type.
func (e *engine) gets(name, what, about string) (found letter) {
	e.t.Helper()
	e.until(fmt.Sprintf("%s has %s about %s", name, what, about), func() bool {
		for _, line := range e.letters(name) {
			l := letter{line: line}
			if json.Unmarshal([]byte(line), &l) == nil && (l.P == what || l.Type == what) && (l.PID == about || l.Task == about) {
				found = l
				return true
			}
		}
		return false
	})
	return found
}

// wantError waits for an error of a code about a message.
func (e *engine) wantError(name, about, code string, retry bool) letter {
	e.t.Helper()
	l := e.gets(name, "ERR", about)
	if d := l.Body.D; d.Code != code || d.Retry == nil || *d.Retry != retry {
		e.t.Errorf("%s is told %s; want %s, retry %v", name, l.line, code, retry)
	}
	return l
}

// wantFailure waits for an error of CAP's.
func (e *engine) wantFailure(name, task string, code int) {
	e.t.Helper()
	if l := e.gets(name, "error_response", task); l.Code != code {
		e.t.Errorf("%s is told %s; want %d", name, l.line, code)
	}
}

// events returns how many events of a kind there are of no task.
func (e *engine) events(kind task.Kind) (n int) {
	e.t.Helper()
	all, err := e.parts.Ledger.Events(context.Background(), "", 0, 10000)
	e.must(err)
	for _, one := range all {
		if one.Kind == kind {
			n++
		}
	}
	return n
}
