package dispatch_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/slowtest"
)

func TestNoMoreRunsBeginThanCanBeFinished(t *testing.T) {
	slowtest.SkipShort(t, "it waits for seconds")
	const most, tasks = 4*2 + 64, 200
	var runs, ending, peak atomic.Int64
	gate := make(chan struct{})
	e := newEngine(t)
	e.opts.Workers = 2
	e.plays["failing"] = func(_ context.Context, j task.Job) task.Outcome {
		peak.Store(max(peak.Load(), runs.Add(1)))
		o := decision(j, "failed")
		o.Result.Status = envelope.Failed
		return o
	}
	e.spoken = e.protocol()
	e.spoken.OnFailure = func(string, envelope.Kind) store.FailureAction { // what is asked for first when a run has failed
		ending.Add(1)
		<-gate
		return store.FailureAction{}
	}
	e.start()
	for n := range tasks {
		e.send(fmt.Sprint("t", n), "failing")
	}
	e.until("so many runs wait for their end as may", func() bool { return ending.Load() >= most })
	e.send("another", "quick") // which gives the others time to begin
	if n := ending.Load(); n != most {
		t.Errorf("%d runs are being finished; want %d", n, most)
	}
	const workers = 4 * 2 // each has one that has ended
	if n := peak.Load(); n > most+workers {
		t.Errorf("%d runs have ended that are not finished; want at most %d", n, most+workers)
	}
	close(gate)
	e.must(e.Idle(t.Context()))
	if n := runs.Load(); n != tasks {
		t.Errorf("%d runs; want one of each of %d tasks", n, tasks)
	}
}
