package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mailboxd/envelope"
)

func TestALineIsAValidRequestOfOneKilobyte(t *testing.T) {
	raw := line(7)
	task, found := envelope.DecodeTask(raw, envelope.Strict)
	if len(raw) != lineSize || len(found) > 0 || string(task.ID) != id(7) {
		t.Errorf("line(7) has %d bytes and is %q with %v; want %d, %s", len(raw), task.ID, found, lineSize, id(7))
	}
}

// The results are verified: each of these would make a false figure.
func TestARunWithMissingOrBadResultsDoesNotCount(t *testing.T) {
	good := map[string]string{"task-0000000.json": `{"task_id":"task-0000000","status":"ok"}`, "task-0000001": "ok\n"}
	for name, c := range map[string]struct {
		file, text string
		want       bool
	}{
		"all good":           {"", "", true},
		"one too many":       {"task-0000002.json", `{"task_id":"task-0000002","status":"ok"}`, false},
		"one that failed":    {"task-0000000.json", `{"task_id":"task-0000000","status":"error"}`, false},
		"one of another":     {"task-0000000.json", `{"task_id":"task-0000001","status":"ok"}`, false},
		"half a result":      {"task-0000000.json", `{"task_id":"task-00`, false},
		"nothing in a shell": {"task-0000001", "", false},
	} {
		dir := t.TempDir()
		put(t, dir, good)
		if c.file != "" {
			put(t, dir, map[string]string{c.file: c.text})
		}
		if err := verify(dir, len(good)); (err == nil) != c.want {
			t.Errorf("%s: verify = %v", name, err)
		}
	}
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestATallyCountsEachFileOnceAndReportsTheCount(t *testing.T) {
	dir, aside := t.TempDir(), t.TempDir()
	files, err := newTally(dir, placed)
	if err != nil {
		t.Fatal(err)
	}
	defer files.close()
	put(t, dir, map[string]string{id(0) + ".json": "a"})
	put(t, dir, map[string]string{id(0) + ".json": "b", "other": "c"})
	put(t, aside, map[string]string{"x": "d"})
	if err := os.Rename(filepath.Join(aside, "x"), filepath.Join(dir, id(1)+".json")); err != nil {
		t.Fatal(err)
	}
	if err := files.all(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	late := errors.New("too late")
	ctx, cancel := context.WithDeadlineCause(t.Context(), time.Unix(0, 0), late)
	defer cancel()
	if err := files.all(ctx, 3); !errors.Is(err, late) || err.Error() != "wait for 3: too late with 2 result files" {
		t.Errorf("all(3) = %v; want it to say how many there are", err)
	}
}

func TestQuantiles(t *testing.T) {
	for _, c := range []struct {
		all         []float64
		share, want float64
	}{
		{nil, 0.5, 0}, {[]float64{3}, 0.99, 3}, {[]float64{3, 1, 2}, 0.5, 2}, {[]float64{4, 1, 2, 3}, 0.5, 2.5},
		{[]float64{5, 4, 3, 2, 1}, 0.9, 5}, {[]float64{5, 4, 3, 2, 1}, 0, 1},
	} {
		if got := quantile(c.all, c.share); got != c.want {
			t.Errorf("quantile(%v, %v) = %v; want %v", c.all, c.share, got, c.want)
		}
	}
	if got := fmt.Sprint(ratios([]float64{2, 9, 1}, []float64{4, 3})); got != "[0.5 3]" {
		t.Errorf("ratios = %s; want [0.5 3]", got)
	}
}

func TestTheTableListsMeasuresAndMissingContenders(t *testing.T) {
	got := table("A machine.", []row{
		{measure: "m", who: "we", tasks: 5000, unit: "tasks/s", got: []float64{900, 1100, 1000}, beside: []float64{0.5, 0.6, 0.7}, cpu: []float64{250}, keeps: "all"},
		{measure: "m", who: "they", unit: "tasks/s", note: "they is not installed"},
	})
	want := `A machine.

| measure | contender or figure | tasks | median | min .. max | beside the first | CPU a task | kept through a power cut |
|---|---|---|---|---|---|---|---|
| m | we | 5,000 | 1,000 tasks/s | 900 .. 1,100 | 0.60 x | 250 us | all |
| m | they |  | they is not installed |  |  |  |  |
`
	if got != want {
		t.Errorf("table =\n%s\nwant\n%s", got, want)
	}
}

func TestTheTableNamesTheJournal(t *testing.T) {
	for options, want := range map[string]string{
		"": "", "rw\nbarrier\ndelalloc\n": " without a journal", "rw\nauto_da_alloc\ndata=ordered\n": " with a journal (ordered)",
	} {
		if got := journal(options); got != want {
			t.Errorf("journal(%q) = %q; want %q", options, got, want)
		}
	}
}
