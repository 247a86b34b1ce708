package agenttext

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/running/runner"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteString(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTheEndOfALongOutputIsShown(t *testing.T) {
	dir := t.TempDir()
	const begin = `{"type":"system","subtype":"init","session_id":"s","tools":[]}` + "\n"
	says := func(words string) string {
		return fmt.Sprintf(`{"type":"assistant","message":{"content":[{"type":"text","text":%q}]}}`, words) + "\n"
	}
	write(t, filepath.Join(dir, runner.StdoutFile), begin+strings.Repeat(says("in the middle"), 80_000)+says("the last words"))
	write(t, filepath.Join(dir, runner.StderrFile), strings.Repeat("a warning\n", 500))
	text := Output(dir)
	if !strings.Contains(text, "\nthe last words\n") || strings.Contains(text, `"assistant"`) || !strings.HasSuffix(text, "a warning\n") {
		t.Errorf("the output ends with %q; want the last words of the agent, and not as JSON", text[max(0, len(text)-6000):])
	}
}
