package realagents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/testtools/realagents/fakemodel"
)

// BenchmarkRunOfClaude measures what mailboxd adds to Claude Code: pairs of claude -p by hand and of
// ask --wait, in turns. start-ms is the median difference of the times from the start of the
// command to its request at the model, and whole-ms of those to its end.
//
//	SLOW_TESTS=1 go test ./internal/testtools/realagents -run '^$' -bench RunOfClaude -benchtime 20x
func BenchmarkRunOfClaude(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		box := newBox(b, all[0])
		box.plain()
		comparePairs(b, box)
	})
	b.Run("sandbox", func(b *testing.B) {
		box := sandboxed(b, all[0])
		text := strings.Replace(box.read(configFile), ", worktree: true", "", 1)
		box.write(configFile, text)
		box.env = append(box.env, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1") // as in the sandbox
		comparePairs(b, box)
	})
}

// comparePairs runs pairs, and reports the medians of their differences.
func comparePairs(b *testing.B, box *box) {
	box.serve()
	box.model.Script(fakemodel.Text("ok"))
	byHand := []string{"-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "dontAsk", "--strict-mcp-config"}
	claude := filepath.Join(box.home, "bin", "claude")
	ask := []string{"ask", "claude", "Say ok", "--wait"}
	box.measured(claude, "Say ok", byHand...) // both once, so that files are in memory
	box.measured(os.Getenv(daemonVariable), "", ask...)
	var starts, wholes, own []time.Duration
	for b.Loop() {
		start, whole := box.measured(claude, "Say ok", byHand...)
		startOver, wholeOver := box.measured(os.Getenv(daemonVariable), "", ask...)
		starts, wholes, own = append(starts, startOver-start), append(wholes, wholeOver-whole), append(own, whole)
	}
	b.ReportMetric(milliseconds(median(starts)), "start-ms")
	b.ReportMetric(milliseconds(median(wholes)), "whole-ms")
	b.ReportMetric(milliseconds(median(own)), "by-hand-ms")
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d pairs; the load was %s", len(starts), load)
}

// measured runs a command, and returns the times from its start to its request and to its end.
func (b *box) measured(program, stdin string, args ...string) (start, whole time.Duration) {
	b.t.Helper()
	before := len(b.model.Requests())
	cmd := exec.CommandContext(b.t.Context(), program, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = b.work, b.env, strings.NewReader(stdin)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	whole = time.Since(began)
	requests := b.model.Requests()
	if err != nil || len(requests) == before {
		b.t.Fatalf("%s %q = %v, %d requests\n%s", program, args, err, len(requests)-before, out)
	}
	return requests[before].At.Sub(began), whole
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
