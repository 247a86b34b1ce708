package dispatch_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// appended writes the lines of new tasks to a task file at once.
func (e *engine) appended(first, count int) {
	e.t.Helper()
	var text bytes.Buffer
	for n := first; n < first+count; n++ {
		fmt.Fprintf(&text, `{"schema_version":"1.0","task_id":"t%d","requester_id":"tester","target_agent":"quick","target_role":"executor",`+
			`"task_type":"work","description":"a task","input":{"refs":[],"payload":{"text":"%0700d"}}}`+"\n", n, n)
	}
	f, err := os.OpenFile(filepath.Join(e.parts.Box.TasksDir(), "bench.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	e.must(err)
	_, err = f.Write(text.Bytes())
	e.must(err)
	e.must(f.Close())
}

// look takes in all that is there.
func (e *engine) look() {
	e.t.Helper()
	for more := true; more; {
		var err error
		more, err = e.Look(e.t.Context())
		e.must(err)
	}
}

// BenchmarkLineToResult is the whole road but the process: lines of 1 KB come
// in, an agent that is a function answers each, and result files are put.
func BenchmarkLineToResult(b *testing.B) {
	for _, batch := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("lines=%d", batch), func(b *testing.B) {
			e := newEngine(b)
			e.opts.Workers = 16
			results := make(chan struct{}, batch)
			e.log.seen = func(line string) {
				if strings.Contains(line, "result put") {
					results <- struct{}{}
				}
			}
			e.start()
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				e.appended(n, batch)
				e.look()
				for range batch {
					<-results // and not Idle, which waits for marks that are in no hurry
				}
				n += batch
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tasks/s")
			last := envelope.ID(fmt.Sprintf("t%d", n-1))
			if row := e.row(string(last)); row.Status != envelope.OK || !e.parts.Box.HasResult(last) {
				b.Errorf("%s = %+v; want it done, with a result file", last, row)
			}
		})
	}
}

// BenchmarkAcceptLines is the first half of it: lines are read, judged and
// durable in the ledger, where their tasks are held.
func BenchmarkAcceptLines(b *testing.B) {
	for _, batch := range []int{1, 256, 4096} {
		b.Run(fmt.Sprintf("lines=%d", batch), func(b *testing.B) {
			e := newEngine(b)
			e.judge = func(envelope.Task, time.Time) task.Verdict {
				return task.Verdict{Admit: true, Hold: []task.Reason{task.Operator}}
			}
			e.start()
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				e.appended(n, batch)
				e.look()
				n += batch
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "lines/s")
			if row := e.row(fmt.Sprintf("t%d", n-1)); row.State != task.Held {
				b.Errorf("the last task is %q; want it held", row.State)
			}
		})
	}
}
