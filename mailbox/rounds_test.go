package mailbox_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mailboxd/mailbox"
)

func TestALineInAnotherFileComesBeforeTheRestOfALongOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes while files are read
		box := open(t)
		write(t, box.TasksDir()+"/long.jsonl", strings.Repeat("a\n", 1000))
		r := tail(t, box, mailbox.TailOptions{BatchLines: 2})
		if batch := r.take(); raws(batch.Lines)[0] != "a" {
			t.Fatalf("the first batch has %q", raws(batch.Lines))
		}
		write(t, box.TasksDir()+"/other.jsonl", "b\n")
		for batches := 1; ; batches++ {
			batch := r.take()
			if raws(batch.Lines)[0] == "b" {
				break
			}
			if batches == 2 {
				t.Fatal("two batches of the long file came before the line in the other one")
			}
		}
	})
}

func TestAFileWhoseLinesAreExpensiveGetsShortTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := open(t)
		write(t, box.TasksDir()+"/cheap.jsonl", strings.Repeat("b\n", 20_000))
		write(t, box.TasksDir()+"/costly.jsonl", strings.Repeat("a\n", 5000))
		r := tail(t, box, mailbox.TailOptions{})
		most := map[string]int{}
		for turn := range 20 {
			batch, err := r.Next()
			must(t, err)
			lines, kind := len(batch.Lines), string(batch.Lines[0].Raw)
			if kind == "a" {
				time.Sleep(time.Duration(lines) * 2 * time.Millisecond)
			}
			r.Done(batch)
			if turn > 2 {
				most[kind] = max(most[kind], lines)
			}
		}
		if most["a"] > 50 || most["b"] != 1024 {
			t.Errorf("turns are of up to %d lines that take 2 ms each, and of up to %d that take none; want 50, and 1024", most["a"], most["b"])
		}
	})
}

// take takes one batch.
func (r *reader) take() mailbox.Batch {
	r.t.Helper()
	batch, err := r.Next()
	if err != nil || batch.Empty() {
		r.t.Fatalf("Next() = %+v, %v; want lines", batch, err)
	}
	r.Done(batch)
	return batch
}
