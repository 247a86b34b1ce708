package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/runner"
	"mailboxd/internal/task"
)

// How much of a progress file is read. An agent that has more to say is not
// heard any more.
const (
	maxProgressLine = 64 << 10
	maxProgress     = 64 << 20
	glance          = 200 * time.Millisecond // between two looks at it, while what a run spends is limited
)

// A meter reads what an agent says on its progress file that it has spent, one
// JSON object a line: {"cost_used":{"tokens":N,"usd_cents":M}}, with the totals
// of its run so far; what else stands in a line is the agent's own. It is read
// from its start whenever somebody takes the run up, and totals count once.
type meter struct {
	job    task.Job
	offset int64 // behind the last whole line
	said   *envelope.Cost
	long   bool  // the offset is inside a line that is too long
	odd    int   // lines that could not be read
	over   error // the first answer of Job.Meter that was one
	unread error // runner.Passing: why the last look missed a part of the file; nil: it did not
	news   reporter

	printed  *follower     // what its program says on standard output; nil for any other
	patience time.Duration // with a program that has said how it ended; 0: without end
}

func (g *Agent) newMeter(j task.Job) *meter {
	m := &meter{job: j, news: reporter{job: j, speaks: g.binding.Speaks(), now: time.Now}}
	if hearings[g.binding.Output] != nil {
		m.printed, m.patience = &follower{format: g.binding.Output}, g.binding.ExitTimeout
	}
	return m
}

// watch looks at the file as long as the run goes on, and ends what it returns
// when the run spends too much. Stop ends the looking, the last look included.
func (m *meter) watch(ctx context.Context) (running context.Context, stop func()) {
	if m.job.Dir == "" {
		return ctx, func() {}
	}
	if m.job.Meter == nil && m.job.Report == nil && m.patience == 0 {
		return ctx, func() { m.look(true) }
	}
	running, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		timer := time.NewTicker(glance)
		defer timer.Stop()
		for {
			if m.look(false); m.over != nil {
				end(m.over)
				return
			}
			if m.overstays() {
				end(errOverstays)
				return
			}
			select {
			case <-done:
				return
			case <-timer.C:
			}
		}
	})
	return running, func() {
		close(done)
		looking.Wait()
		end(nil)
		m.look(true)
	}
}

// look reads what is new. The last line counts without its end when there is
// nothing more to come.
func (m *meter) look(last bool) {
	m.listen(last)
	m.unread = nil
	f, err := openRegular(m.job.Dir, progressFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case runner.Passing(err):
		m.unread = fmt.Errorf("read progress: %w", err)
		return
	case err != nil:
		m.odd = max(m.odd, 1)
		return
	}
	defer f.close()
	if f.size < m.offset {
		m.offset, m.long = 0, false // begun anew: totals count once
	}
	m.read(io.NewSectionReader(f, m.offset, min(f.size, maxProgress)-m.offset), last)
	m.news.flush(last)
}

// listen hears what the program prints; what it cannot hear now is met again
// in the answer.
func (m *meter) listen(last bool) {
	if m.printed == nil || m.printed.look(m.job.Dir, last) != nil {
		return
	}
	if cost := m.printed.said.cost(); cost != nil {
		m.hear(*cost)
	}
}

// overstays reports whether the program has been done for longer than it may
// take to exit.
func (m *meter) overstays() bool {
	return m.patience > 0 && m.printed.said.done && time.Since(m.printed.ended) >= m.patience
}

// read takes whole lines. One that is too long is passed over.
func (m *meter) read(r io.Reader, last bool) {
	in := bufio.NewReaderSize(r, maxProgressLine)
	for {
		line, err := in.ReadSlice('\n')
		if err == nil || errors.Is(err, bufio.ErrBufferFull) {
			m.offset += int64(len(line))
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if !m.long {
				m.odd++
			}
			m.long = true
		case err == nil && m.long:
			m.long = false // its end
		case err == nil, last && !m.long && errors.Is(err, io.EOF):
			m.take(line)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if runner.Passing(err) {
				m.unread = fmt.Errorf("read progress: %w", err)
			}
			return
		}
	}
}

// take hears one line.
func (m *meter) take(line []byte) {
	var said struct {
		Cost *struct {
			Tokens   *int64 `json:"tokens"`
			USDCents *int64 `json:"usd_cents"`
		} `json:"cost_used"`
	}
	line = bytes.TrimSpace(line)
	m.news.take(line)
	switch {
	case len(line) > 0 && json.Unmarshal(line, &said) != nil:
		m.odd++
	case said.Cost == nil:
	case said.Cost.Tokens == nil || said.Cost.USDCents == nil || *said.Cost.Tokens < 0 || *said.Cost.USDCents < 0:
		m.odd++ // half a cost is unknown (AINL-68)
	default:
		m.hear(envelope.Cost{Tokens: *said.Cost.Tokens, USDCents: *said.Cost.USDCents})
	}
}

// hear keeps the largest totals, and asks whether they are too much.
func (m *meter) hear(cost envelope.Cost) {
	if m.said != nil {
		cost = cost.Most(*m.said)
		if cost == *m.said {
			return
		}
	}
	m.said = &cost
	if m.job.Meter != nil && m.over == nil {
		m.over = m.job.Meter(cost)
	}
}

// add puts what was said on the way into a result: its cost is no less, and a
// person is told of what could not be read where it would have counted.
func (m *meter) add(r *envelope.Result) {
	switch {
	case m.said == nil:
	case r.Cost == nil:
		r.Cost = m.said
	default:
		most := r.Cost.Most(*m.said)
		r.Cost = &most
	}
	if m.odd > 0 && m.job.Meter != nil {
		r.Review.Ask(fmt.Sprintf("%d lines of its progress file could not be read", m.odd))
	}
}
