package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"mailboxd/internal/decisions/task"
)

// askFirst is an agent that asks before it edits a file.
const askFirst = `printf "%s\n" '{"ask":{"id":"1","kind":"edit","title":"Change main.go","paths":["main.go"],` +
	`"diff":"-old <script>\n+new <script>"}}' >>$MAILBOX_PROGRESS_FILE; ` +
	`until read -r answer <$MAILBOX_ANSWERS_FILE; do sleep 0.1; done; echo "$answer"`

func TestAPersonApprovesACallOfARunningTaskOnThePage(t *testing.T) {
	b, w := browser(t), newWorld(t)
	appendTo(t, w.config, fmt.Sprintf("  - {id: asker, exec: {command: [/bin/sh, -c, '%s'], output: text}, acp: {otherwise: ask}, allow_unmetered: true}\n",
		strings.ReplaceAll(askFirst, "'", "''")))
	w.stop(w.daemon)
	w.serve()
	w.send("careful", "asker", "{}")
	b.enter(w.open())
	b.sees("careful")
	b.visit("/tasks/careful")
	b.sees("Change main.go", "main.go", "-old <script>", "+new <script>")
	b.do(chromedp.Click(`button[data-verb=approve]`))
	b.sees("+new <script>")
	w.confirm(b)
	b.sees("Approved")
	w.result("careful")
	found := w.details("careful")
	if a := found.Approvals[0]; a.Decision != string(task.Approved) || a.Stage != "tool" || a.Proof == nil || a.Proof.Kind != "terminal" {
		t.Errorf("approval = %+v; want one of a call, with the terminal as its proof", a)
	}
	if got := w.summary("careful"); !strings.Contains(got, `"decision":"allow"`) {
		t.Errorf("the agent got %q; want that it may", got)
	}
}
