package agent

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

func TestAPromptNamesTheDirectoryInWhichTheRunWorks(t *testing.T) {
	raw := []byte(`{"input": {"mbx.workdir": "/home/me/app"}, "metadata": {"a": 1, "mbx.workdir": "/home/me/app", "b": 2}}`)
	j := task.Job{Cwd: "/state/clone/1"}
	j.Task = envelope.Task{Raw: raw, Metadata: map[string]jsontext.Value{envelope.WorkdirKey: jsontext.Value(`"/home/me/app"`)}}
	want := `{"input": {"mbx.workdir": "/home/me/app"}, "metadata": {"a": 1, "mbx.workdir": "/state/clone/1", "b": 2}}`
	if got := string(withWorkdir(raw, j)); got != want {
		t.Errorf("the prompt has %s; want %s", got, want)
	}
}
