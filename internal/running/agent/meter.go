package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/brokered"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/toolcall"
)

// Limits on reading a progress file. Later content is ignored.
const (
	maxProgressLine = toolcall.MaxLine
	maxProgress     = 64 << 20
	pollInterval    = 200 * time.Millisecond // between two reads, if the run has a limit
)

// A meter reads an agent's spending from its progress file, one JSON object a line:
// {"cost_used":{"tokens":N,"usd_cents":M}}, with the totals of the run. Other members are
// the agent's own. A recovered run is read from the start; totals count once.
type meter struct {
	job        task.Job
	offset     int64          // after the last whole line
	spent      *envelope.Cost // by the agent, without its tools
	long       bool           // the offset is inside a line that is too long
	unreadable int            // number of unreadable lines
	overBudget error          // the first error of Job.Meter
	unread     error          // runner.Passing: why the last read missed a part of the file; nil: it didn't
	reporter   reporter
	calls      *toolcall.Calls  // nil: the agent doesn't ask about its calls
	broker     *brokered.Reader // nil: the run has no tool broker

	output      *follower     // standard output of a profile's program; nil for any other
	exitTimeout time.Duration // of a program after its answer; 0: unlimited
	idleTimeout time.Duration // of a program without an event of its model or a tool; 0: unlimited
	started     bool          // the program, and not only the setup before it
}

func (g *Agent) newMeter(j task.Job) *meter {
	m := &meter{job: j, reporter: reporter{job: j, speaks: g.binding.Speaks(), now: time.Now}}
	m.broker = brokered.NewReader(j)
	m.calls = toolcall.New(j, filepath.Join(workDir(j.Dir), progressFile))
	if host := recipes[g.binding.Profile].host; host != nil {
		m.calls.Exempt(host.exempt)
	}
	if eventReaders[g.binding.Output] != nil {
		m.output = g.newFollower(j)
		m.output.progressed = time.Now()
		m.exitTimeout, m.idleTimeout = g.binding.ExitTimeout, g.binding.IdleTimeout
	}
	return m
}

// watch polls the file during the run, and ends the returned context if the run spends too
// much. Stop ends the polling, after a last poll.
func (m *meter) watch(ctx context.Context) (running context.Context, stop func()) {
	if m.job.Dir == "" {
		return ctx, func() {}
	}
	if m.job.Meter == nil && m.job.Report == nil && m.exitTimeout == 0 && m.idleTimeout == 0 && !m.mayWait() && m.calls == nil && m.broker == nil {
		return ctx, func() { m.poll(true) }
	}
	running, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		defer m.calls.Close()
		timer := time.NewTicker(pollInterval)
		defer timer.Stop()
		for {
			if m.poll(false); m.overBudget != nil {
				end(m.overBudget)
				return
			}
			if m.calls.Violation() != nil {
				end(errToolViolation)
				return
			}
			if m.exitOverdue() {
				end(errExitOverdue)
				return
			}
			if m.isIdle() {
				end(errNoProgress)
				return
			}
			if m.mayWait() && m.output.waitsLong(time.Now()) {
				end(errLongWait)
				return
			}
			if m.calls.Await(done, timer.C) {
				return
			}
		}
	})
	return running, func() {
		close(done)
		looking.Wait()
		end(nil)
		m.poll(true)
	}
}

// poll reads new content. The last line counts without its newline if last is set.
func (m *meter) poll(last bool) {
	m.followOutput(last)
	before := m.broker.Spent()
	if m.broker.Poll(); m.broker.Spent() != before {
		m.check()
	}
	m.unread = nil
	f, err := openRegular(workDir(m.job.Dir), progressFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case runner.Passing(err):
		m.unread = fmt.Errorf("read progress: %w", err)
		return
	case err != nil:
		m.unreadable = max(m.unreadable, 1)
		return
	}
	defer f.close()
	if f.size < m.offset {
		m.offset, m.long = 0, false // the file was truncated; totals count once
	}
	m.read(io.NewSectionReader(f, m.offset, min(f.size, maxProgress)-m.offset), last)
	m.reporter.flush(last)
	if !last && m.calls.DecideOpen() {
		m.noteWaiting(f)
	}
}

// noteWaiting keeps the time in which a person decides from counting as idle.
func (m *meter) noteWaiting(f *file) {
	now := unix.NsecToTimeval(time.Now().UnixNano())
	_ = unix.Futimes(f.fd, []unix.Timeval{now, now}) // if it fails, the time counts
	if m.output != nil {
		m.output.progressed = time.Now()
	}
}

// followOutput reads the program's output. Errors come up again when the answer is read.
func (m *meter) followOutput(last bool) {
	if m.output == nil {
		return
	}
	m.output.pollErrors(m.job.Dir)
	if m.output.poll(m.job.Dir, last) != nil {
		return
	}
	if cost := m.output.transcript.cost(); cost != nil {
		m.update(*cost)
	}
}

// mayWait reports whether the program is one that says in its log what it waits for.
func (m *meter) mayWait() bool { return m.output != nil && m.output.format == OpenCode }

// exitOverdue reports whether the program has been done for longer than exitTimeout.
func (m *meter) exitOverdue() bool {
	return m.exitTimeout > 0 && m.output.transcript.done && !m.output.isRefused() && time.Since(m.output.ended) >= m.exitTimeout
}

// isIdle reports whether the model and the tools of the program have made no progress for
// idleTimeout, although the program may print. The runner ends one that prints nothing.
func (m *meter) isIdle() bool {
	if m.idleTimeout > 0 && !m.started {
		m.started = !runner.InSetup(m.job.Dir)
		m.output.progressed = time.Now()
	}
	return m.idleTimeout > 0 && !m.output.transcript.done && time.Since(m.output.progressed) >= m.idleTimeout
}

// read reads whole lines and skips one that is too long.
func (m *meter) read(r *io.SectionReader, last bool) {
	in := bufio.NewReaderSize(r, int(min(r.Size(), maxProgressLine))+1)
	for {
		line, err := in.ReadSlice('\n')
		if err == nil || errors.Is(err, bufio.ErrBufferFull) {
			m.offset += int64(len(line))
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if !m.long {
				m.unreadable++
			}
			m.long = true
		case err == nil && m.long:
			m.long = false // its end
		case err == nil, last && !m.long && errors.Is(err, io.EOF):
			m.readLine(line)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if runner.Passing(err) {
				m.unread = fmt.Errorf("read progress: %w", err)
			}
			return
		}
	}
}

// readLine decodes one line.
func (m *meter) readLine(line []byte) {
	var data struct {
		Cost *struct {
			Tokens   *int64 `json:"tokens"`
			USDCents *int64 `json:"usd_cents"`
		} `json:"cost_used"`
	}
	line = bytes.TrimSpace(line)
	m.reporter.readLine(line)
	if m.output != nil {
		m.output.progressed = time.Now()
	}
	switch {
	case m.readCall(line):
	case len(line) > 0 && json.Unmarshal(line, &data) != nil:
		m.unreadable++
	case data.Cost == nil:
	case data.Cost.Tokens == nil || data.Cost.USDCents == nil || *data.Cost.Tokens < 0 || *data.Cost.USDCents < 0:
		m.unreadable++ // half a cost is unknown (AINL-68)
	default:
		m.update(envelope.Cost{Tokens: *data.Cost.Tokens, USDCents: *data.Cost.USDCents})
	}
}

// readCall reports whether a line is about a call of a tool, and answers it. An input may be JSON that
// names a member twice: its agent waits for an answer all the same.
func (m *meter) readCall(line []byte) bool {
	var data struct {
		Ask    *toolcall.Line `json:"ask"`
		Called *toolcall.Line `json:"called"`
	}
	if m.calls == nil || json.Unmarshal(line, &data, lenient) != nil {
		return false
	}
	switch {
	case data.Ask != nil:
		m.calls.Ask(*data.Ask)
	case data.Called != nil:
		m.calls.Called(*data.Called)
	default:
		return false
	}
	return true
}

// update keeps the largest totals of the agent, and checks them against the limit.
func (m *meter) update(cost envelope.Cost) {
	if m.spent != nil {
		cost = cost.Most(*m.spent)
		if cost == *m.spent {
			return
		}
	}
	m.spent = &cost
	m.check()
}

// check compares with the limit what the agent and its tools have used.
func (m *meter) check() {
	if m.job.Meter == nil || m.overBudget != nil {
		return
	}
	var own envelope.Cost
	if m.spent != nil {
		own = *m.spent
	}
	m.overBudget = m.job.Meter(own.Plus(m.broker.Spent()))
}

// add adds the reported spending to a result: its cost is at least that, and that of its tools. It asks
// for a review if unreadable lines could have mattered.
func (m *meter) add(r *envelope.Result) {
	switch {
	case m.spent == nil:
	case r.Cost == nil:
		r.Cost = m.spent
	default:
		most := r.Cost.Most(*m.spent)
		r.Cost = &most
	}
	if r.Cost != nil { // otherwise it is unknown, whatever the tools used
		all := r.Cost.Plus(m.broker.Spent())
		r.Cost = &all
	}
	if m.unreadable > 0 && m.job.Meter != nil {
		r.Review.Ask(fmt.Sprintf("%d lines of its progress file could not be read", m.unreadable))
	}
}
