package web_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/envelope"
)

// sessionProgram keeps a session as Claude Code does, and answers with the questions of the session.
const sessionProgram = `#!/bin/sh
id= new=new
while [ $# -gt 0 ]; do
	case $1 in --resume) id=$2 ;; esac
	shift
done
words=$(sed -n 's/.*"description": *"\([^"]*\)".*/\1/p')
place=$HOME/.claude/projects/$(pwd | tr / -)
mkdir -p "$place"
if [ -n "$id" ]; then
	[ -f "$place/$id.jsonl" ] || { echo "No conversation found with session ID: $id" >&2; exit 1; }
	new=then
else
	id=$(cat /proc/sys/kernel/random/uuid)
fi
printf '%s: %s. ' "$new" "$words" >>"$place/$id.jsonl"
printf '{"type":"system","subtype":"init","session_id":"%s"}\n' "$id"
printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","session_id":"%s","total_cost_usd":0}\n' "$(cat "$place/$id.jsonl")" "$id"
`

func TestAQuestionOnThePageGoesOnInTheSessionOfTheAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	program := filepath.Join(w.dir, "claude")
	if err := os.WriteFile(program, []byte(sessionProgram), 0o755); err != nil {
		t.Fatal(err)
	}
	appendTo(t, w.config, fmt.Sprintf("  - {id: talker, profile: claude, exec: {command: [%s]}}\n", program))
	w.stop(w.daemon)
	w.serve()
	w.send("first", "talker", `{}`)
	w.result("first")
	v := w.visit(w.open())
	if _, text := v.get("/tasks/first"); !strings.Contains(text, "A question in the same session of") {
		t.Fatalf("the page has no form for a question: %s", text)
	}
	_, text := v.post("/tasks/first/ask", url.Values{"token": {v.token}, "words": {"and the tests?"}})
	if asked := w.typeNumber(text); !strings.Contains(asked, "Ask further in the session of first") || !strings.Contains(asked, "words     and the tests?") {
		t.Errorf("the terminal asks %q; want the question and its session", asked)
	}
	w.until(func() bool { return len(w.tasksOf("talker")) == 2 })
	for _, one := range w.tasksOf("talker") {
		if one.ID == "first" {
			continue
		}
		w.result(one.ID)
		for _, want := range []string{"new: the work first.", "then: and the tests?."} {
			if _, text := v.get("/tasks/" + string(one.ID)); !strings.Contains(text, want) {
				t.Errorf("the page of %s has no %q: %s", envelope.ID(one.ID), want, text)
			}
		}
	}
}
