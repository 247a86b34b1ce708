package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/running/runner"
)

// forging plays a process that tells a lie once there is a record of it, and
// exits 3.
func forging(lie func(dir string, text []byte)) func() {
	return func() {
		wait(os.Getenv("READY"))
		lie(os.Getenv(runner.DirVariable), []byte(`{"code":0,"argv":["`+strings.Repeat("x", 1<<10)+`"]}`))
		os.Exit(3)
	}
}

func overwriteRecord(dir string, text []byte) {
	os.WriteFile(filepath.Join(dir, runner.MetaFile), text, 0o600)
}

func replaceRecord(dir string, text []byte) {
	os.Remove(filepath.Join(dir, runner.MetaFile))
	overwriteRecord(dir, text)
}

func forgeExit(dir string, text []byte) {
	os.WriteFile(filepath.Join(dir, runner.ExitFile), text, 0o600)
}

func TestAProcessCannotSayItselfHowItEnds(t *testing.T) {
	for _, name := range []string{"writes over its record", "empties its record", "replaces its record", "forges its exit"} {
		s := playing(t, name)
		want, err := runner.Run(t.Context(), s, func(runner.Process) { tell(t, s) })
		if err != nil || want.Code != 3 {
			t.Fatalf("%s: Run = %+v, %v; want status 3", name, want, err)
		}
		got, ok, err := runner.ReadExit(s.Dir)
		if !ok || err != nil || got.Code != 3 || got.PID != want.PID {
			t.Errorf("%s: ReadExit = %+v, %v, %v; want %+v", name, got, ok, err, want)
		}
	}
}
