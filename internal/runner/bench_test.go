package runner_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"mailboxd/internal/runner"
	"mailboxd/internal/sandbox"
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

// BenchmarkKeeperRunSandboxed runs the program in a sandbox and without one by turns, and
// reports the median of each.
func BenchmarkKeeperRunSandboxed(b *testing.B) {
	base := b.TempDir()
	k := keepers(b, filepath.Join(base, "keepers"), "bench")
	took := map[string][]time.Duration{}
	n := 0
	for b.Loop() {
		for _, name := range []string{"plain", "sandbox"} {
			n++
			s := runner.Spec{Dir: filepath.Join(base, strconv.Itoa(n)), Argv: []string{"/usr/bin/true"}, MaxOutput: 64 << 20}
			if err := os.Mkdir(s.Dir, 0o700); err != nil {
				b.Fatal(err)
			}
			if name == "sandbox" {
				s = boxed(b, s, sandbox.Settings{}, nil)
			}
			began := time.Now()
			if exit := keptRun(b, k, s); exit.Code != 0 {
				b.Fatalf("Run(true) = %+v", exit)
			}
			took[name] = append(took[name], time.Since(began))
		}
	}
	for name, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), name+"-p50-us")
		b.ReportMetric(float64(all[len(all)/4].Microseconds()), name+"-p25-us")
		b.ReportMetric(float64(all[3*len(all)/4].Microseconds()), name+"-p75-us")
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
