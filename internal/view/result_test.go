package view_test

import (
	"bytes"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/view"
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
