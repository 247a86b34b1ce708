package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/sandbox"
)

// BenchmarkRunTrue is a whole run of a program that does nothing.
func BenchmarkRunTrue(b *testing.B) {
	base := b.TempDir()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		dir := filepath.Join(base, strconv.Itoa(n))
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		exit, err := runner.Run(b.Context(), runner.Spec{Dir: dir, Argv: []string{"/bin/true"}, MaxOutput: 64 << 20}, nil)
		if err != nil || exit.Code != 0 {
			b.Fatalf("Run(true) = %+v, %v", exit, err)
		}
	}
}

// BenchmarkSpawnTrue is the floor under it: the same program, and no run.
func BenchmarkSpawnTrue(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{Env: []string{}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkKeeperRunTrue is the same run as BenchmarkRunTrue, in a keeper.
func BenchmarkKeeperRunTrue(b *testing.B) {
	base := b.TempDir()
	k := keepers(b, filepath.Join(base, "keepers"), "bench")
	keptRun(b, k, runner.Spec{Dir: b.TempDir(), Argv: []string{"/bin/true"}})
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		dir := filepath.Join(base, strconv.Itoa(n))
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		exit := keptRun(b, k, runner.Spec{Dir: dir, Argv: []string{"/bin/true"}, MaxOutput: 64 << 20})
		if exit.Code != 0 {
			b.Fatalf("Run(true) = %+v", exit)
		}
	}
}

// BenchmarkKeeperRunSandboxed is BenchmarkKeeperRunTrue in a sandbox. It reports the median and the
// quartiles of a run: the mean has in it what the kernel removes later.
func BenchmarkKeeperRunSandboxed(b *testing.B) {
	base := b.TempDir()
	k := keepers(b, filepath.Join(base, "keepers"), "bench")
	var took []time.Duration
	for b.Loop() {
		dir := filepath.Join(base, strconv.Itoa(len(took)))
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		s := boxed(b, runner.Spec{Dir: dir, Argv: []string{"/usr/bin/true"}, MaxOutput: 64 << 20}, sandbox.Settings{}, nil)
		began := time.Now()
		if exit := keptRun(b, k, s); exit.Code != 0 {
			b.Fatalf("Run(true) = %+v", exit)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	for _, quarter := range []int{1, 2, 3} {
		b.ReportMetric(float64(took[quarter*len(took)/4].Microseconds()), fmt.Sprintf("p%d-us", 25*quarter))
	}
}

// BenchmarkKeeperStart is the first run of all, which starts the keeper, and
// the leaving of both.
func BenchmarkKeeperStart(b *testing.B) {
	base := b.TempDir()
	n := 0
	for b.Loop() {
		n++
		k, err := runner.OpenKeepers(filepath.Join(base, "keepers"), "bench", []string{"keeper", "keeper"})
		if err != nil {
			b.Fatal(err)
		}
		dir := filepath.Join(base, strconv.Itoa(n))
		if err := os.Mkdir(dir, 0o700); err != nil {
			b.Fatal(err)
		}
		keptRun(b, k, runner.Spec{Dir: dir, Argv: []string{"/bin/true"}})
		if err := k.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
