package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == playWorker {
		answerLines(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// Both verify that each task has its result.
func TestATaskAloneLeavesTheFilesOfAMailbox(t *testing.T) {
	dir := t.TempDir()
	took, err := alone([]string{"/bin/true"})(t.Context(), dir, 3)
	if err != nil || took.wall <= 0 || took.cpu <= 0 {
		t.Fatalf("alone = %v, %v; want what it took", took, err)
	}
	for _, name := range []string{"request.json", "stdout", "stderr"} {
		if _, err := os.Stat(filepath.Join(dir, "runs", id(2), "1.1", name)); err != nil {
			t.Error(err)
		}
	}
}

func TestAWorkerAloneAnswersTheLastGroupToo(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if took, err := aloneWorker(self, playWorker)(t.Context(), t.TempDir(), 2*together+1); err != nil || took.cpu <= 0 {
		t.Errorf("aloneWorker = %v, %v; want what it took", took, err)
	}
}

func TestATaskAloneThatFailsDoesNotCount(t *testing.T) {
	if _, err := alone([]string{"/bin/false"})(t.Context(), t.TempDir(), 3); err == nil {
		t.Error("alone(/bin/false) = nil; want an error")
	}
	if _, err := aloneWorker("/bin/true")(t.Context(), t.TempDir(), 3); err == nil {
		t.Error("aloneWorker(/bin/true) = nil; want an error: it answers nothing")
	}
}
