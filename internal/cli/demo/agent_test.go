package demo_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"mailboxd/internal/cli/demo"
)

// A writer cancels when the first line is written.
type canceler struct{ cancel context.CancelFunc }

func (c canceler) Write(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}

func TestAnAgentOfTheDemoEndsAsSoonAsItIsStopped(t *testing.T) {
	t.Setenv("MAILBOX_PROGRESS_FILE", "")
	ctx, cancel := context.WithCancel(t.Context())
	request := `{"schema_version": "1.0", "task_id": "t1", "requester_id": "ada", "target_agent": "writer", "target_role": "executor", "task_type": "work", "description": "work", "input": {"refs": [], "payload": {"seconds": 3600}}}`
	if err := demo.Act(ctx, "writer", strings.NewReader(request), io.Discard, canceler{cancel}); !errors.Is(err, context.Canceled) {
		t.Errorf("Act = %v; want that it was cancelled", err)
	}
}
