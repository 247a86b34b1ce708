package journal_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"mailboxd/internal/journal"
)

// benchEvent has a line of about 300 bytes; one of four has a body of as much more, as
// a task that is done has a request among its events.
func benchEvent(n uint64) journal.Event {
	e := journal.Event{
		N: n, At: start.Add(time.Duration(n) * time.Millisecond), Kind: "run.started", Task: fmt.Sprintf("task-%08d", n/4), Revision: 1,
		Data: []byte(`{"attempt":1,"agent":"reviewer","pid":123456,"directory":"/home/user/.local/state/mailboxd/runs/task/1.1","limits":{"wall":"30m","memory":"2GiB"},"enforced":["keeper","cgroup"],"account":"team","reserved":1.25}`),
	}
	if n%4 == 0 {
		e.Bodies = []journal.Body{{Name: "request", Text: e.Data}}
	}
	return e
}

func benchGroup(from uint64, size int) (group []journal.Event) {
	for i := range size {
		group = append(group, benchEvent(from+uint64(i)))
	}
	return group
}

// BenchmarkAppend is what it takes to make a group durable, most of it the sync.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("events=%d", size), func(b *testing.B) {
			j := open(b, filepath.Join(b.TempDir(), "journal"), journal.Options{})
			defer closeJournal(b, j)
			group := benchGroup(1, size)
			bytes := j.Head().Offset
			b.ReportAllocs()
			for b.Loop() {
				for i := range group {
					group[i].N = j.Head().N + uint64(i) + 1
				}
				if _, err := j.Append(group); err != nil {
					b.Fatal(err)
				}
				bytes += int64(group[size-1].Place.Length)
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N*size), "µs/event")
		})
	}
}

// BenchmarkReplay and BenchmarkVerify read a journal of 100,000 events in groups of 16.
func BenchmarkReplay(b *testing.B) {
	benchRead(b, func(dir string) error {
		_, err := journal.Replay(dir, journal.Position{}, func(*journal.Event) error { return nil })
		return err
	})
}

func BenchmarkVerify(b *testing.B) {
	benchRead(b, func(dir string) error {
		_, err := journal.Verify(context.Background(), dir)
		return err
	})
}

func BenchmarkReadBody(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "journal")
	j := open(b, dir, journal.Options{})
	group := benchGroup(1, 256)
	if _, err := j.Append(group); err != nil {
		b.Fatal(err)
	}
	closeJournal(b, j)
	for b.Loop() {
		if _, err := journal.ReadBody(dir, group[99].Place, "request"); err != nil {
			b.Fatal(err)
		}
	}
}

func benchRead(b *testing.B, read func(dir string) error) {
	const size = 16
	dir := filepath.Join(b.TempDir(), "journal")
	j := open(b, dir, journal.Options{})
	for j.Head().N < 100_000 {
		if _, err := j.Append(benchGroup(j.Head().N+1, size)); err != nil {
			b.Fatal(err)
		}
	}
	closeJournal(b, j)
	b.ReportAllocs()
	for b.Loop() {
		if err := read(dir); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*float64(j.Head().N)/b.Elapsed().Seconds(), "events/s")
}
