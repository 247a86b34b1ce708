package torture_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
)

// answer has the person do a task of an agent that fetches its tasks, in one of
// the ways there are: a result file, an answer at the socket, or one to what was
// claimed. Whatever comes of it, the next round sees.
func (a *approver) answer(ctx context.Context, daemon *client.Client, task client.Task) error {
	words := heardOf(task.ID).words()
	switch a.chance.IntN(3) {
	case 0:
		text := fmt.Sprintf(`{"schema_version":"1.0","task_id":%q,"agent_id":%q,"status":"ok","output":{"summary":%q,"actions":[]}}`, task.ID, task.Agent, words)
		return putWhole(a.site.path("by-hand-"+string(task.ID)), a.site.result(string(task.ID)), text)
	case 1:
		a.submit(ctx, daemon, task, "")
	default:
		got, err := daemon.Claim(ctx, client.Claim{Agent: task.Agent})
		if err == nil && got.Task != nil {
			a.submit(ctx, daemon, *got.Task, got.Lease)
		}
	}
	return nil
}

func (a *approver) submit(ctx context.Context, daemon *client.Client, task client.Task, lease string) {
	text := fmt.Sprintf(`{"status":"ok","summary":%q,"actions":[]}`, heardOf(task.ID).words())
	_, _ = daemon.Submit(ctx, task.ID, client.Submission{Agent: task.Agent, Lease: lease, Result: jsontext.Value(text)})
}

// judgeFetched: a task that was fetched has the answer of its claimant.
func judgeFetched(p promise, r envelope.Result) error {
	if want := fmt.Sprintf("%s v%d", p.id, p.version); r.Status != envelope.OK || r.Output.Summary != want {
		return fmt.Errorf("%s, %s %q, %q; want the answer %q", r.Status, r.Error.Kind, r.Error.Message, r.Output.Summary, want)
	}
	return nil
}

// checkInbox looks for each task in the inbox of the agent that was to fetch it,
// unless it was answered before it was there, as only somebody can who knows of
// it without.
func (s *site) checkInbox(t *testing.T, b *book) {
	t.Helper()
	text, err := os.ReadFile(s.path("box/agents/pull/inbox.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	asked, there := 0, 0
	for _, p := range b.promises {
		if p.fate != fetched {
			continue
		}
		if asked++; strings.Contains(string(text), fmt.Sprintf(`"task_id":%q`, p.id)) {
			there++
		}
	}
	if asked > 0 && there == 0 {
		t.Errorf("none of %d tasks was in the inbox", asked)
	}
	t.Logf("%d of %d tasks were in their inbox before somebody answered", there, asked)
}
