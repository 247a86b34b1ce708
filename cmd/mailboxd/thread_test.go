package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/access/api"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/mailbox"
)

// A chronicle writes what is said and what happens into a ledger, a second apart.
type chronicle struct {
	tx  *ledger.Tx
	err error
}

// next is the time of what comes next.
func (c *chronicle) next() time.Time {
	time.Sleep(time.Second) // of a bubble
	return time.Now()
}

func (c *chronicle) task(row task.Task, k task.Conversation, raw string) {
	row.Revision, row.Hash, row.State, row.Received = 1, string(row.ID), task.Running, c.next()
	if row.Dialect == "" {
		row.Dialect = envelope.CAP
	}
	if c.err == nil {
		k.Task, c.err = c.tx.Add(row, []byte(raw))
	}
	if c.err == nil && row.Dialect != envelope.AINL {
		c.err = c.tx.StartConversation(k)
	}
}

func (c *chronicle) event(id envelope.ID, kind, data string) {
	at := c.next()
	if c.err == nil {
		c.err = c.tx.Log(task.Event{Time: at, Kind: task.Kind(kind), Task: id, Revision: 1, Data: []byte(data)})
	}
}

func (c *chronicle) said(m task.Message) {
	m.Time = c.next()
	if m.Dialect == "" {
		m.Dialect = envelope.CAP
	}
	if c.err == nil {
		_, c.err = c.tx.Record(m)
	}
}

func (c *chronicle) end(seq int64, status envelope.Status, kind envelope.Kind, words string) {
	c.next()
	result := envelope.Result{TaskID: "T", AgentID: "a", Status: status, Output: envelope.Output{Summary: words}}
	if kind != "" {
		result.Error = envelope.Error{Kind: kind, Message: words}
	}
	if c.err == nil {
		_, c.err = c.tx.Move(seq, task.Running, 0, task.Change{To: task.Done, Status: status, Kind: kind, Result: result.Encode()})
	}
}

// capLine is a line of CAP.
func capLine(kind, task, from, to, member, words string) string {
	line, err := json.Marshal(map[string]string{"type": kind, "task_id": task, "sender_id": from, "recipient_id": to, member: words})
	if err != nil {
		panic(err) // strings always are
	}
	return string(line)
}

// writeTalk is a conversation of which everything happens that one can: T1 and
// what it leads to, with a request of AINL beside it.
func writeTalk(tx *ledger.Tx) error {
	c := &chronicle{tx: tx}
	said := func(act envelope.Act, via task.Via, seq int64, kind, id, from, to, member, words string) {
		c.said(task.Message{Act: act, Via: via, Task: seq, Thread: "T1", Trace: "x-7", From: from, To: to, Body: []byte(capLine(kind, id, from, to, member, words))})
	}
	request := func(id, from, to, words string) string {
		return capLine("delegation_notice", id, from, to, "context_summary", words)
	}

	c.task(task.Task{ID: "T1", Agent: "pm-1", Requester: "orchestrator"}, task.Conversation{Thread: "T1", Trace: "x-7"}, request("T1", "orchestrator", "pm-1", "User request: analyze last quarter's sales trends"))
	said(envelope.Requests, task.ByLine, 1, "delegation_notice", "T1", "orchestrator", "pm-1", "context_summary", "User request: analyze last quarter's sales trends")
	c.event("T1", "task.accepted", `{}`)
	c.event("T1", "task.started", `{"attempt":1}`)
	c.event("T1", "task.progress", `{"pct":40,"note":"reading the spec"}`)
	said(envelope.Informs, task.ByRun, 1, "message", "T1", "pm-1", "user", "content", "To clarify, do you want regional breakdowns, customer segments, or overall trend insight?")
	c.event("T1", "task.held", `{"reasons":["reply"]}`)
	said(envelope.Informs, task.ByLine, 1, "message", "T1", "user", "pm-1", "content", "Regional breakdown by major market would be\nhelpful.\x1b[2J")
	c.event("T1", "task.resumed", `{"from":"user"}`)
	c.event("T1", "task.started", `{"attempt":2}`)
	c.task(task.Task{ID: "T1.1", Agent: "analyst-1", Requester: "pm-1", Parent: 1}, task.Conversation{Thread: "T1", Trace: "x-7", Tie: envelope.Assist}, request("T1.1", "pm-1", "analyst-1", "please analyze"))
	said(envelope.Delegates, task.ByRun, 2, "delegation_notice", "T1.1", "pm-1", "analyst-1", "context_summary", "The user asked us to analyze last quarter's sales trends. I've done some reasearch and broke down his question into tasks.")
	c.event("T1", "task.held", `{"reasons":["children"]}`)
	c.event("T1.1", "task.held", `{"reasons":["approval"]}`)
	c.event("T1.1", "approval.approved", `{"by":"dba","stage":"pre","note":"fine"}`)
	c.event("T1.1", "task.started", `{"attempt":1}`)
	c.event("T1.1", "task.finished", `{"status":"ok"}`)
	c.event("T1.1", "oversight.asked", `{"overseer":"qa-1","task":"T1.1.1"}`)
	c.task(task.Task{ID: "T1.1.1", Agent: "qa-1", Requester: "analyst-1", Parent: 2}, task.Conversation{Thread: "T1", Trace: "x-7", Tie: envelope.Oversee}, request("T1.1.1", "analyst-1", "qa-1", "Analysis complete; please verify data accuracy and relevance."))
	said(envelope.Delegates, task.ByRun, 3, "delegation_notice", "T1.1.1", "analyst-1", "qa-1", "context_summary", "Analysis complete; please verify data accuracy and relevance.")
	said(envelope.Inquires, task.ByRun, 3, "oversight_inquiry", "T1.1.1", "qa-1", "analyst-1", "inquiry", "The report seems detailed and thorough, but the total for Europe seems low.")
	said(envelope.Informs, task.ByRun, 3, "message", "T1.1.1", "analyst-1", "qa-1", "content", "Confirmed: using 'sales_clean' table.")
	said(envelope.Informs, task.ByRun, 3, "message", "T1.1.1", "qa-1", "pm-1", "content", "Verified. Analysis is complete and accurate.")
	c.end(3, envelope.OK, "", "Verified. Analysis is complete and accurate.")
	c.end(2, envelope.OK, "", "See the tables.")
	said(envelope.Completes, task.ByDaemon, 1, "message", "T1", "pm-1", "orchestrator", "content", "said by an event as well")
	c.task(task.Task{ID: "T1.2", Dialect: envelope.AINL, Agent: "nobody", Requester: "pm-1", Parent: 1}, task.Conversation{}, taskLine("T1.2", "nobody", ""))
	c.event("T1.2", "task.accepted", `{}`)
	c.event("T1.2", "task.rejected", `{}`)
	c.end(4, envelope.Rejected, envelope.UnknownAgent, "target_agent: no such agent is configured")
	c.end(1, envelope.OK, "", "Here is the verified Q4 sales trend report with regional and product breakdown.")
	return c.err
}

// talkOf is a mailbox in which there was a conversation.
func talkOf(t *testing.T) *reader.Reader {
	t.Helper()
	root := t.TempDir()
	state, err := mailbox.OpenState(filepath.Join(t.TempDir(), "state"), root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { state.Close() })
	memory, _, err := ledger.Open(state.LedgerPath())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	if err := errors.Join(os.Mkdir(filepath.Join(root, "results"), 0o700), memory.Update(context.Background(), writeTalk)); err != nil {
		t.Fatal(err)
	}
	return &reader.Reader{Root: root, State: state, Client: clientOf(&api.Records{Root: root, State: state, Ledger: memory.Reader})}
}

func TestWhatAConversationIsToldAs(t *testing.T) {
	synctest.Test(t, whatAConversationIsToldAs)
}

func whatAConversationIsToldAs(t *testing.T) {
	d := talkOf(t)
	for name, s := range screens {
		var out bytes.Buffer
		s.Writer = &out
		said, err := d.Client.Thread(t.Context(), "T1")
		if err == nil {
			err = view.Timeline{Dialogue: said}.Print(s)
		}
		file, err1 := d.Details(t.Context(), "T1")
		out.WriteString("--------\n")
		if err := errors.Join(err, err1, tellOf(t, d, file, s, time.Now())); err != nil {
			t.Fatal(err)
		}
		golden(t, "thread."+name, strings.ReplaceAll(out.String(), d.Root, "ROOT"))
	}
}

// A conversation goes by its own name, by any task of it and its beginning, and
// by its trace.
func TestAConversationHasManyNames(t *testing.T) { synctest.Test(t, aConversationHasManyNames) }

func aConversationHasManyNames(t *testing.T) {
	d := talkOf(t)
	thread, trace := (*client.Client).Thread, (*client.Client).Trace
	for _, c := range []struct {
		arg  string
		read func(*client.Client, context.Context, string) (client.Dialogue, error)
		want string
	}{
		{"T1", thread, "thread T1"}, {"T1.1", thread, "thread T1"}, {"T1.1.", thread, "thread T1"}, {"T1.2", thread, "thread T1"}, {"x-7", thread, "trace x-7"},
		{"x-7", trace, "trace x-7"}, {"T1.1.1", trace, "trace x-7"}, {"T1", trace, "trace x-7"},
	} {
		got, err := d.Dialogue(t.Context(), c.arg, c.read)
		if err != nil || got.Kind+" "+got.ID != c.want || len(got.Tasks) != 4 || len(got.Messages) != 9 {
			t.Errorf("dialogue(%s) = %s %s with %d tasks and %d messages, %v; want %s with 4 and 9", c.arg, got.Kind, got.ID, len(got.Tasks), len(got.Messages), err, c.want)
		}
		if !slices.IsSortedFunc(got.Messages, func(a, b client.Message) int { return int(a.Seq - b.Seq) }) {
			t.Errorf("messages of %s are not in order", c.arg)
		}
	}
	for _, arg := range []string{"T2", "", "x", "../x"} {
		if _, err := d.Dialogue(t.Context(), arg, thread); exit.CodeOf(err) != exit.NoTask && exit.CodeOf(err) != exit.Usage {
			t.Errorf("dialogue(%q) = %v; want exit code %d", arg, err, exit.NoTask)
		}
	}
}
