package compose

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/running/agent"
)

// Words joins the words of a command line. A single - stands for the text in in, of which at
// most limit bytes are read and one more: the line of the task is too long then.
func Words(in io.Reader, args []string, limit int64) (string, error) {
	words := strings.Join(args, " ")
	if len(args) == 1 && words == "-" {
		text, err := io.ReadAll(io.LimitReader(in, limit+1))
		if err != nil {
			return "", fmt.Errorf("read standard input: %w", err)
		}
		words = string(text)
	}
	if words = strings.TrimSpace(words); words == "" {
		return "", exit.With(exit.Usage, "the words are empty: say what the agent shall do")
	}
	return strings.ToValidUTF8(words, "\uFFFD"), nil
}

// Directory makes a directory absolute, with symbolic links resolved if it exists; "" stays.
func Directory(dir string) string {
	if dir == "" {
		return ""
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	return dir
}

// CheckPlace refuses a task in a directory that its agent doesn't allow. The daemon checks
// the directory again, by its own configuration.
func CheckPlace(b agent.Binding, own agent.OwnDirs, request []byte) error {
	t, findings := envelope.DecodeTask(request, envelope.Strict)
	if findings.Refused() {
		return exit.With(exit.Usage, "%s", findings.Refusals())
	}
	agents, err := agent.New([]agent.Binding{b}, agent.Options{Own: own})
	if err != nil {
		return err
	}
	a, _ := agents.Lookup(b.ID)
	if _, wrong := a.Cwd(t); wrong.Refused() {
		return exit.With(exit.Rejected, "%s", wrong[0].Message)
	}
	return nil
}
