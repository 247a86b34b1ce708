package registry

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/sandboxing/sandbox"
)

func TestWithoutBubblewrapTheResultIsThereWithinASecond(t *testing.T) {
	for name, program := range map[string]string{
		"missing": "",
		"too old": "#!/bin/sh\necho bubblewrap 0.7.9\n",
		"failing": "#!/bin/sh\n[ \"$1\" = --version ] && echo bubblewrap 0.8.0 && exit\n[ \"$1\" = --help ] && exit\necho 'bwrap: no' >&2\nexit 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			if program != "" {
				if err := os.WriteFile(filepath.Join(bin, "bwrap"), []byte(program), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", bin)
			ran := filepath.Join(t.TempDir(), "ran")
			agents, err := agent.New([]agent.Binding{{
				ID: "a", Command: []string{"/bin/sh", "-c", "echo >" + ran}, Retries: 3,
				Sandbox: sandbox.Settings{Profile: sandbox.Workspace, Missing: sandbox.Refuse},
			}}, agent.Options{})
			if err != nil {
				t.Fatal(err)
			}
			best := time.Hour
			for range 3 { // others use the machine, too
				began := time.Now()
				o := agents.Run(t.Context(), task.Job{Task: envelope.Task{ID: "t1", Agent: "a"}, Dir: t.TempDir(), RunID: "r"}, nil)
				best = min(best, time.Since(began))
				if o.Result.Status != envelope.Rejected || o.Result.Error.Kind != envelope.SandboxUnavailable || o.Retry || o.Exit.PID != 0 {
					t.Errorf("Run = %+v, retry %v, process %d; want it refused as sandbox_unavailable, once", o.Result, o.Retry, o.Exit.PID)
				}
			}
			if best > time.Second {
				t.Errorf("it took %v; want less than a second", best)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("the agent ran")
			}
		})
	}
}
