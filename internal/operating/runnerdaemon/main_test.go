package runnerdaemon

import (
	"context"
	"os"
	"strings"
	"testing"

	"mailboxd/internal/running/runner"
)

// TestMain makes this program a keeper too, and removes the variables of somebody who uses mailboxd.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "keeper" {
		if err := runner.Keep(context.Background(), os.Args[2], os.Args[3], nil); err != nil {
			panic(err)
		}
		return
	}
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "MAILBOXD_") || name == "AINL_AGENT_ROOT" {
			if err := os.Unsetenv(name); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}
