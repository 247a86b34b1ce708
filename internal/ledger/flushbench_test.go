package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/task"
)

// addedTasks is a layer as intake makes it: n lines of 1 KB, each with its event.
func addedTasks(first int64, n int) *memtable {
	c := newLayer()
	at := time.UnixMicro(1_700_000_000_000_000).UTC()
	for seq := first; seq < first+int64(n); seq++ {
		sum := sha256.Sum256(fmt.Append(nil, seq))
		hash := hex.EncodeToString(sum[:])
		c.setTask(&taskChange{
			Task: task.Task{
				Seq: seq, ID: envelope.ID(fmt.Sprintf("task-%07d", seq)), Revision: 1, Latest: true, Hash: hash, Dialect: envelope.AINL,
				State: task.Queued, Agent: "bench", Requester: "somebody", Type: "bench", Received: at, File: "tasks/backlog.jsonl", Offset: seq * 1024,
			},
			added: true, raw: make([]byte, 1023),
		})
		c.log(task.Event{Time: at, Kind: "task.accepted", Of: seq, Data: fmt.Appendf(nil, `{"file":"tasks/backlog.jsonl","hash":"%s","offset":%d}`, hash, seq*1024)})
	}
	c.files["tasks/backlog.jsonl"] = File{Path: "tasks/backlog.jsonl", Offset: 1}
	return c
}

// BenchmarkFold brings to the tables what intake has made durable in the redo log.
func BenchmarkFold(b *testing.B) {
	for _, size := range []int{500, 8000} {
		b.Run(fmt.Sprintf("tasks=%d", size), func(b *testing.B) {
			l, _, err := Open(filepath.Join(b.TempDir(), "ledger.db"))
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			b.ReportAllocs()
			seq, cpu := int64(1), time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				c := addedTasks(seq, size)
				seq += int64(size)
				b.StartTimer()
				begin := processorTime()
				l.redo.last++
				if err := l.commitTables(l.redo.last, c); err != nil {
					b.Fatal(err)
				}
				cpu += processorTime() - begin
			}
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(seq-1), "cpu-ns/task")
		})
	}
}

// BenchmarkFrame makes the frame of a task that comes in.
func BenchmarkFrame(b *testing.B) {
	c := addedTasks(1, 1)
	var frame []byte
	row := make([]value, 0, mostValues)
	b.ReportAllocs()
	for b.Loop() {
		frame = appendFrame(frame[:0], 1, c, row)
	}
}

// processorTime is what this process has taken so far: on a busy machine that says more than how long something took.
func processorTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
