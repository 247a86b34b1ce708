package doctor

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/running/agent"
)

func TestAProgramThatIsSlowToSayItsVersionIsNoProblem(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gemini"), []byte("#!/bin/sh\nexec sleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	d := &checker{path: dir}
	found, _, err := d.program(ctx, agent.Binding{Command: []string{"gemini"}})
	if err != nil || !strings.HasSuffix(found, "/gemini, which did not say its version within 3s") {
		t.Errorf("doctor finds %q, %v; want the program and no problem", found, err)
	}
}
