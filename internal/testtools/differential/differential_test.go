package differential_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailboxd/internal/testtools/slowtest"
)

// TestBothBuildsDoTheSame runs random scenarios with the base and with the working tree.
func TestBothBuildsDoTheSame(t *testing.T) {
	slowtest.Require(t, "it builds another commit, and plays each scenario with both builds")
	base, current := builds(t)
	c := comparison{base: base, current: current}
	c.run(t, *seed, *scenarios)
	t.Logf("%d scenarios from seed %d, %d steps; %d of them are not repeatable: %v", *scenarios, *seed, c.steps, len(c.unstable), c.unstable)
	if len(c.unstable) > max(1, *scenarios/100) {
		t.Errorf("%d of %d scenarios are not repeatable by the base itself", len(c.unstable), *scenarios)
	}
}

// A comparison runs scenarios with two builds.
type comparison struct {
	base, current string

	mu       sync.Mutex // guards what follows
	steps    int
	unstable []uint64 // the seeds of scenarios that the base does not repeat
}

// run runs scenarios with consecutive seeds, several at a time.
func (c *comparison) run(t *testing.T, first uint64, number int) {
	t.Helper()
	seeds := make(chan uint64)
	var workers sync.WaitGroup
	for range *parallel {
		dir := shortDir(t)
		workers.Go(func() {
			for s := range seeds {
				difference, err := c.one(t.Context(), newScenario(s), filepath.Join(dir, "m"))
				if difference != "" || err != nil {
					t.Errorf("repeat with -seed=%d -scenarios=1: %s%s", s, difference, failure(err))
				}
			}
		})
	}
	for n := range number {
		seeds <- first + uint64(n)
	}
	close(seeds)
	workers.Wait()
	daemons.Wait()
}

func failure(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// shortDir is a directory with a name that leaves room for that of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "diff-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// one runs a scenario with both builds, and returns how they differ. When they do, each
// runs it again: what a build does not repeat says nothing, and the scenario is begun anew.
func (c *comparison) one(ctx context.Context, s scenario, dir string) (string, error) {
	c.mu.Lock()
	c.steps += len(s.steps)
	c.mu.Unlock()
	for range 3 {
		base, current := s.outcome(ctx, dir, c.base), s.outcome(ctx, dir, c.current)
		if *show {
			fmt.Println(base)
		}
		difference := base.against(current)
		if difference == "" && base.err != nil {
			return "", fmt.Errorf("neither build can play the scenario: %w", base.err)
		}
		if difference == "" {
			return "", nil
		}
		if c.repeats(ctx, s, dir, base, current) {
			return "the builds differ at " + difference + "\n", nil
		}
		if *show {
			fmt.Printf("seed %d was not repeated:\n%s\n", s.seed, difference)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unstable = append(c.unstable, s.seed)
	return "", nil
}

// repeats reports whether each build has its outcome again, three times.
func (c *comparison) repeats(ctx context.Context, s scenario, dir string, base, current outcome) bool {
	for range 3 {
		if base.against(s.outcome(ctx, dir, c.base)) != "" || current.against(s.outcome(ctx, dir, c.current)) != "" {
			return false
		}
	}
	return true
}

// An outcome is what could be seen of a scenario.
type outcome struct {
	records []record
	err     error
}

func (s scenario) outcome(ctx context.Context, dir, daemon string) outcome {
	records, err := s.play(ctx, dir, daemon)
	return outcome{records, err}
}

func (o outcome) String() string {
	var text strings.Builder
	for n, r := range o.records {
		fmt.Fprintf(&text, "#### step %d: %s\n%s\n", n+1, r.step, strings.Join(r.lines(), "\n"))
	}
	if o.err != nil {
		fmt.Fprintf(&text, "#### failed: %v\n", o.err)
	}
	return text.String()
}

// against returns the first difference from another outcome, "" for none.
func (o outcome) against(other outcome) string {
	for n, r := range o.records {
		if n >= len(other.records) {
			break
		}
		theirs := other.records[n]
		if !slices.Equal(r.lines(), theirs.lines()) {
			return fmt.Sprintf("step %d: %s\nbase (-) and current (+):\n%s", n+1, r.step, cmp.Diff(r.bySection(), theirs.bySection()))
		}
	}
	if (o.err == nil) != (other.err == nil) {
		return fmt.Sprintf("base: %v\ncurrent: %v", o.err, other.err)
	}
	return ""
}

func (r record) bySection() map[string][]string {
	of := map[string][]string{}
	for n, s := range r.sections {
		name := s.name
		if of[name] != nil {
			name = fmt.Sprintf("%s (%d)", name, n)
		}
		of[name] = s.lines
	}
	return of
}
