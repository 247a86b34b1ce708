package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/cli/exit"
)

// A work is what the payload of a task asks of a role.
type work struct {
	Seconds float64 `json:"seconds"`
	Tokens  int64   `json:"tokens"`
	Cents   int64   `json:"cents"`
	Fail    string  `json:"fail"`
}

// Roles are the words with which an agent of the demo begins its lines.
var roles = map[string][]string{
	"writer":   {"Reading the history", "Grouping the changes by component", "Writing a draft", "Comparing the draft with the style guide", "Checking every link", "Reading it once more"},
	"tester":   {"Building", "Starting the services", "Running the tests", "Running the slow tests", "Collecting the logs"},
	"reviewer": {"Reading the change", "Reading its tests", "Looking for what it breaks", "Writing remarks"},
	"auditor":  {"Listing the dependencies", "Comparing licences", "Looking up the owners", "Writing the report"},
	"deployer": {"Checking the plan", "eu-west: draining", "eu-west: deployed, healthy", "us-east: draining", "us-east: deployed, healthy"},
}

// Act plays a role: it reads a request, works for a while, and prints an answer. When ctx ends, it
// stops working, and its error is the cause.
func Act(ctx context.Context, role string, in io.Reader, out, progress io.Writer) error {
	request, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	switch role {
	case "planner", "analyst", "checker":
		return converse(ctx, role, out)
	}
	t, findings := envelope.DecodeTask(bytes.TrimSpace(request), envelope.Strict)
	if findings.Refused() {
		return fmt.Errorf("read request: %s", findings)
	}
	var w work
	if err := json.Unmarshal(t.Payload, &w); err != nil {
		return fmt.Errorf("read payload: %w", err)
	}
	if err := report(ctx, role, w, progress); err != nil {
		return err
	}
	if w.Fail != "" {
		fmt.Fprintln(progress, "FAIL", w.Fail)
		return exit.With(exit.Failed, "%s", w.Fail)
	}
	_, err = out.Write(answer(t, w).Encode())
	return err
}

// report works, and says what it does: a line a moment, and a percentage with the cost so far.
func report(ctx context.Context, role string, w work, to io.Writer) error {
	began, whole := time.Now(), time.Duration(w.Seconds*float64(time.Second))
	file, err := os.OpenFile(os.Getenv("MAILBOX_PROGRESS_FILE"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		defer file.Close()
	} else {
		file = nil
	}
	steps := roles[role]
	for n := 0; time.Since(began) < whole; n++ {
		part := min(1, float64(time.Since(began))/float64(whole))
		words := steps[n%len(steps)]
		fmt.Fprintf(to, "%s %s\n", time.Now().Format(time.TimeOnly), words)
		if file != nil && n%3 == 0 {
			fmt.Fprintf(file, "{\"pct\": %d, \"note\": %q}\n{\"cost_used\": {\"tokens\": %d, \"usd_cents\": %d}}\n",
				int(part*100), words, int64(part*float64(w.Tokens)), int64(part*float64(w.Cents)))
		}
		if err := pause(ctx, min(1200*time.Millisecond, max(whole/6, 50*time.Millisecond))); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for a while, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func answer(t envelope.Task, w work) envelope.Result {
	confidence := 0.9
	return envelope.Result{
		TaskID: t.ID, AgentID: t.Agent, Status: envelope.OK, Confidence: &confidence,
		Output: envelope.Output{
			Summary: "Done: " + t.Description + ".",
			Actions: []envelope.Action{{Kind: t.Type, Description: "Did what the request asks for.", Status: "executed"}},
			Extra:   jsontext.Value(fmt.Sprintf(`{"steps":%d}`, len(roles[t.Agent]))),
		},
		Cost: &envelope.Cost{Tokens: w.Tokens, USDCents: w.Cents},
	}
}

// converse plays a role that speaks CAP: the planner leaves work to the analyst, who asks the
// checker to look at it, or the user to decide.
func converse(ctx context.Context, role string, out io.Writer) error {
	said, err := os.ReadFile(os.Getenv("MAILBOX_CONVERSATION_FILE"))
	if err != nil {
		return fmt.Errorf("read conversation: %w", err)
	}
	id := os.Getenv("MAILBOX_TASK_ID")
	has := func(text string) bool { return bytes.Contains(said, []byte(text)) }
	if err := pause(ctx, 700*time.Millisecond); err != nil {
		return err
	}
	message := map[string]any{"type": "message", "task_id": id, "sender_id": role, "recipient_id": "orchestrator"}
	delegate := func(to, part, words string) {
		message["type"], message["task_id"], message["recipient_id"] = "delegation_notice", id+part, to
		message["context_summary"], message["attachments"] = words, []any{}
	}
	switch {
	case role == "planner" && !has("two customers left"):
		delegate("analyst", ".1", "Look at the customers who bought less than in the quarter before")
	case role == "planner":
		message["content"] = "Sales fell since two customers left in October. The analyst's numbers were checked."
	case role == "analyst" && has("ask if anything is unclear") && !has(`"sender_id":"user"`):
		message["recipient_id"], message["content"], message["expects_reply"] = "user", "Should the report name the customers, or only count them?", true
	case role == "analyst" && has("ask if anything is unclear"):
		message["content"] = "Nine customers left, two of them large. The report follows your answer."
	case role == "analyst" && !has("the numbers are right"):
		delegate("checker", ".1", "Check the sums of the two largest customers")
	case role == "analyst":
		message["recipient_id"], message["content"] = "planner", "The whole difference is that two customers left in October."
	default:
		message["recipient_id"], message["content"] = "analyst", "I added them up again: the numbers are right."
	}
	text, err := json.Marshal(message)
	if err == nil {
		_, err = fmt.Fprintf(out, "%s\n", text)
	}
	return err
}
