package view_test

import (
	"bytes"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/view"
)

func TestNothingAnAgentSaysReachesTheTerminalRaw(t *testing.T) {
	var out bytes.Buffer
	raw := `{"schema_version":"1.0","task_id":"t","agent_id":"a\u001b","status":"ok\u001b[2J","output":{"summary":"\u001b"},"error":{"kind":"\u001b]0;x\u0007","message":"\u001b"}}`
	for _, text := range []string{raw, "\x1b[2J no result"} {
		if err := view.PrintResult(&out, []byte(text), false); err != nil {
			t.Fatal(err)
		}
	}
	out.WriteString(view.StateWithReasons(client.Task{State: "done", Status: envelope.Status("\x1b[2J"), Kind: "\x1b[31m"}))
	out.WriteString(view.StateWithReasons(client.Task{State: "done", Status: envelope.Status("\x1b[2J")}))
	if strings.ContainsAny(out.String(), "\x1b\x07") {
		t.Errorf("printed %q; want no control characters", out.String())
	}
}

func TestAResultSaysWhichEventsOfItsProgramAreUnknown(t *testing.T) {
	var out bytes.Buffer
	r := envelope.Result{TaskID: "t", AgentID: "a", Status: envelope.OK}
	r.Output = envelope.Output{Summary: "Done.", Extra: []byte(`{"unknown_events":{"new\u001b":2,"newer":1}}`)}
	if err := view.PrintResult(&out, r.Encode(), false); err != nil {
		t.Fatal(err)
	}
	if want := "  events    mailboxd does not know 3 of its program, of the kinds new\\u001b, newer\n"; !strings.Contains(out.String(), want) {
		t.Errorf("printed\n%s\nwant %q", out.String(), want)
	}
}
