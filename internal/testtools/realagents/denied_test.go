package realagents_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// writeCall is a call that writes hello.txt, in the words of a program.
func (b *box) writeCall() fakemodel.Reply {
	switch b.program.name {
	case "claude":
		return fakemodel.ToolCall("Write", map[string]any{"file_path": "hello.txt", "content": "hi\n"})
	case "codex":
		return fakemodel.ToolCall("exec_command", map[string]any{"cmd": "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: hello.txt\n+hi\n*** End Patch\nEOF"})
	case "gemini":
		return fakemodel.ToolCall("write_file", map[string]any{"file_path": "hello.txt", "content": "hi\n"})
	}
	return fakemodel.ToolCall("write", map[string]any{"filePath": "hello.txt", "content": "hi\n"})
}

// A denial is an entry of output.denied.
type denial struct {
	Tool  string         `json:"tool"`
	Input map[string]any `json:"input"`
	Why   string         `json:"why"`
}

func TestAWriteThatWasNotAllowedIsNotDone(t *testing.T) {
	forEach(t, func(t *testing.T, b *box) {
		b.plain()
		if b.program.name == "opencode" { // it allows everything by default
			b.write(".config/opencode/opencode.json", strings.Replace(b.read(".config/opencode/opencode.json"), "{", `{"permission": {"edit": "deny"},`, 1))
		}
		b.serve()
		b.model.Script(b.writeCall(), fakemodel.Text("I wrote hello.txt."))
		asked := b.screen("ask", b.program.name, "Write hello.txt", "--wait")
		b.golden("denied."+b.program.name, asked+"--------\n"+b.screen("show", "last"))
		var r result
		var denied []denial
		if err := json.Unmarshal([]byte(b.lastResult()), &r); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(r.Output.Denied, &denied); err != nil || len(denied) != 1 || denied[0].Tool == "" || denied[0].Why == "" {
			t.Fatalf("output.denied = %s, %v; want the write", r.Output.Denied, err)
		}
		path, _ := denied[0].Input["file_path"].(string)
		if says := b.program.name == "claude" || b.program.name == "gemini"; says && filepath.Base(path) != "hello.txt" {
			t.Errorf("the denied input is %v; want the path", denied[0].Input)
		}
		said := "was not allowed to use " + denied[0].Tool + "; to allow it, set "
		if !r.Review.Required || !strings.Contains(r.Review.Reason, said) {
			t.Errorf("needs_review = %+v; want %q", r.Review, said)
		}
		if words := strings.Join(strings.Fields(asked), " "); !strings.Contains(words, said) {
			t.Errorf("ask says %q; want %q", words, said)
		}
		found, _ := filepath.Glob(filepath.Join(b.home, ".local/state/mailboxd/*/runs/*/*/hello.txt"))
		if _, err := os.Stat(filepath.Join(b.work, "hello.txt")); err == nil || len(found) > 0 {
			t.Errorf("the file was written: %v", found)
		}
	})
}
