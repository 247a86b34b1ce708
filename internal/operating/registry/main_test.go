package registry

import (
	"os"
	"strings"
	"testing"
)

// TestMain removes the variables of somebody who uses mailboxd: they would change what is read.
func TestMain(m *testing.M) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "MAILBOXD_") || name == "AINL_AGENT_ROOT" {
			if err := os.Unsetenv(name); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}
