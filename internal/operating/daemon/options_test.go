package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"mailboxd/internal/operating/config"

	"github.com/rs/zerolog"
)

func TestTheEngineGetsTheLimitsOfTheConfiguration(t *testing.T) {
	for _, name := range []string{"AINL_AGENT_ROOT", "MAILBOXD_LOG_LEVEL"} { // of somebody who uses mailboxd
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "limits: {concurrency: 3, queue: 7, per_requester: 2, shutdown_grace: 9s, depth: 5, children: 6}\npolicy: {context_divisor: 2}"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, "")
	if err != nil {
		t.Fatal(err)
	}
	o := storeOptions(cfg, false, zerolog.Nop())
	if o.Workers != 3 || o.Queue != 7 || o.PerRequester != 2 || o.Grace != 9*time.Second || o.Depth != 5 || o.Children != 6 {
		t.Errorf("options = %+v; want those of the configuration", o)
	}
	if got := cfg.Policy.Rules().ContextDivisor; got != 2 {
		t.Errorf("context divisor %d; want 2", got)
	}
}
