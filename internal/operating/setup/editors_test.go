package setup_test

import (
	"bytes"
	"strings"
	"testing"

	"mailboxd/internal/operating/setup"
)

func TestWithoutAnEditorNothingIsChanged(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var said bytes.Buffer
	err := setup.ChangeEditors(t.Context(), &said, setup.EditorChange{Command: []string{"/bin/mailboxd", "mcp"}})
	if err != nil || !strings.Contains(said.String(), "none of claude, codex, gemini, opencode, cursor is on PATH") {
		t.Errorf("ChangeEditors = %v, %q; want that none is there", err, &said)
	}
}
