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
)

// TestBothBuildsDoTheSame runs random scenarios with the base and with the working tree.
func TestBothBuildsDoTheSame(t *testing.T) {
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
	found    []string // differences
}

// run runs scenarios with consecutive seeds, several at a time.
func (c *comparison) run(t *testing.T, first uint64, number int) {
	t.Helper()
	seeds := make(chan uint64)
	var workers sync.WaitGroup
	for n := range *parallel {
		dir, err := os.MkdirTemp("", fmt.Sprintf("diff-%d-", n))
		if err != nil {
			t.Fatal(err)
		}
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			t.Fatal(err)
		}
		workers.Go(func() {
			defer os.RemoveAll(dir)
			for s := range seeds {
				if difference := c.one(t.Context(), newScenario(s), filepath.Join(dir, "m")); difference != "" {
					t.Error(difference)
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

// one runs a scenario with both builds, and returns how they differ. When they do, each
// runs it again: a scenario that a build does not repeat says nothing.
func (c *comparison) one(ctx context.Context, s scenario, dir string) string {
	base, current := s.outcome(ctx, dir, c.base), s.outcome(ctx, dir, c.current)
	if *show {
		fmt.Println(base)
	}
	c.mu.Lock()
	c.steps += len(s.steps)
	c.mu.Unlock()
	difference := base.against(current)
	if difference == "" && base.err != nil {
		return fmt.Sprintf("the base cannot play the scenario; repeat with -seed=%d -scenarios=1\n%v", s.seed, base.err)
	}
	if difference == "" {
		return ""
	}
	for range 3 {
		if base.against(s.outcome(ctx, dir, c.base)) != "" || current.against(s.outcome(ctx, dir, c.current)) != "" {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.unstable = append(c.unstable, s.seed)
			if *show {
				fmt.Printf("seed %d is not repeatable:\n%s\n", s.seed, difference)
			}
			return ""
		}
	}
	return fmt.Sprintf("the builds differ; repeat with -seed=%d -scenarios=1\n%s", s.seed, difference)
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
