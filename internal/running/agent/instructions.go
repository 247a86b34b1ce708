package agent

import (
	"fmt"
	"io"
	"strings"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

// replyFormats say for each other dialect how an agent answers in it.
var replyFormats = map[envelope.Dialect]string{
	envelope.CLowl: dialect.Prompt(), envelope.Clutch: dialect.ClutchPrompt(),
	envelope.CAP: `Answer in CAP: JSON objects and nothing else, one a line.
Your answer, or a message to anybody: {"type": "message", "recipient_id": "...", "content": "..."}; to your requester that is your answer, unless it has "expects_reply": true or ends with a question mark.
Hand over work: {"type": "delegation_notice", "task_id": "<your task_id>.1", "recipient_id": "...", "context_summary": "what was done and what remains", "attachments": []}.
Question the work of another agent: {"type": "oversight_inquiry", "recipient_id": "...", "inquiry": "..."}.
You cannot do it: {"type": "error_response", "error_code": 500, "error_message": "..."}.
About another task than yours, add its task_id. After a question or a delegation say nothing more: you are asked again when there is an answer.`,
}

// instruct writes the instructions of the agent's definition, then its possible delegates
// and bound tools.
func (g *Agent) instruct(w io.Writer) {
	d := g.binding.Definition
	if d == nil {
		return
	}
	fmt.Fprintf(w, "%s\n\n", d.SystemPrompt)
	for _, id := range d.AllowedAgents {
		fmt.Fprintf(w, "You may hand work to the agent %s: %s\n", id, d.Rules[id])
	}
	for _, b := range d.Bindings {
		fmt.Fprintf(w, "You may use the tools of the MCP server %s: %s (%s).\n", b.Server, orNone(strings.Join(b.Tools, ", ")), orNone(strings.Join(b.Scopes, ", ")))
	}
}
