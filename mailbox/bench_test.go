package mailbox_test

import (
	"fmt"
	"strings"
	"testing"

	"mailboxd/mailbox"
)

// BenchmarkLines reads a backlog of lines of 1 KB.
func BenchmarkLines(b *testing.B) {
	box := open(b)
	text := strings.Repeat(strings.Repeat("x", 1023)+"\n", 100_000)
	write(b, box.TasksDir()+"/x.jsonl", text)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r := box.Tail(nil, mailbox.TailOptions{})
		if got := count(b, r); got != 100_000 {
			b.Fatalf("%d lines, want 100000", got)
		}
		r.Close()
	}
}

// BenchmarkLineToBatch is one appended line, read.
func BenchmarkLineToBatch(b *testing.B) {
	box := open(b)
	r := tail(b, box, mailbox.TailOptions{})
	line := strings.Repeat("x", 1023) + "\n"
	b.ReportAllocs()
	for b.Loop() {
		add(b, box.TasksDir()+"/x.jsonl", line)
		if got := count(b, r.Tail); got != 1 {
			b.Fatalf("%d lines, want 1", got)
		}
	}
}

// BenchmarkLookAtQuietFiles is a look at 10,000 files of which none changed.
func BenchmarkLookAtQuietFiles(b *testing.B) {
	box := open(b)
	for n := range 10_000 {
		write(b, fmt.Sprintf("%s/%d.jsonl", box.TasksDir(), n), "x\n")
	}
	r := tail(b, box, mailbox.TailOptions{})
	r.rest()
	b.ReportAllocs()
	for b.Loop() {
		if got := count(b, r.Tail); got != 0 {
			b.Fatalf("%d lines, want none", got)
		}
	}
}

func count(b *testing.B, r *mailbox.Tail) (lines int) {
	for {
		batch, err := r.Next()
		if err != nil {
			b.Fatal(err)
		}
		if batch.Empty() {
			return lines
		}
		lines += len(batch.Lines)
		r.Done(batch)
	}
}
