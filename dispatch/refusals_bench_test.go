package dispatch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// BenchmarkAcceptedAndRefused has the two rates side by side. Lines of 1 KB come
// in and each ends in a result file: after a run of an agent that is a function,
// or as a refusal.
func BenchmarkAcceptedAndRefused(b *testing.B) {
	verdicts := map[string]task.Verdict{
		"accepted": {Admit: true},
		"refused":  {Findings: envelope.Findings{{Kind: envelope.UnknownAgent, Field: "target_agent", Message: "is not configured"}}},
	}
	for _, name := range []string{"accepted", "refused"} {
		b.Run(name, func(b *testing.B) {
			const batch = 1000
			e := newEngine(b)
			e.opts.Workers, e.opts.Queue = 16, 10*batch
			e.judge = func(envelope.Task, time.Time) task.Verdict { return verdicts[name] }
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
					<-results
				}
				n += batch
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), name+"/s")
			last := envelope.ID(fmt.Sprintf("t%d", n-1))
			if row := e.row(string(last)); row.State != task.Done || !e.parts.Box.HasResult(last) {
				b.Errorf("%s = %+v; want it done, with a result file", last, row)
			}
		})
	}
}
