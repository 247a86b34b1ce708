package agent

import (
	"bytes"
	"errors"
	"time"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/quota"
	"mailboxd/internal/running/runner"
	events "mailboxd/internal/running/transcript"
)

// errLongWait ends a run whose program sleeps until its provider serves it again.
var errLongWait = errors.New("its program waits for its provider")

const (
	// shortWait is how long a program may wait for the time that its provider names.
	shortWait = time.Minute
	// longestTry is how long opencode can be at work on another request to its provider without a
	// word: it pauses for 40 s at most unless the provider names a time in a header, which it prints
	// nowhere, and gives up a request without an answer after 5 minutes. Version 1.18.33:
	// packages/opencode/src/session/retry.ts, and https://opencode.ai/docs/config for the timeouts.
	longestTry = 6 * time.Minute
)

// pollErrors reads what opencode has written to its log, on standard error. Errors of reading
// don't matter: a limit of time ends the run then.
func (f *follower) pollErrors(dir string) {
	if f.format != OpenCode {
		return
	}
	file, err := openRegular(dir, runner.StderrFile)
	if err != nil {
		return
	}
	defer file.close()
	for f.logRead < file.size {
		text, err := file.read(f.logRead, maxWhole)
		n := bytes.LastIndexByte(text, '\n') + 1
		if n == 0 && len(text) == maxWhole {
			n = len(text) // of a line that is too long
		}
		if err != nil || n == 0 {
			return
		}
		for line := range bytes.Lines(text[:n]) {
			if refused, ok := events.OpenCodeRefusal(bytes.TrimSpace(line)); ok {
				f.refused = refused
			}
		}
		f.logRead += int64(n)
	}
}

// readPrinted reads when opencode printed an event of its model or a tool.
func (f *follower) readPrinted(line []byte) {
	if f.format != OpenCode {
		return
	}
	at := events.OpenCodePrinted(line)
	if at.IsZero() {
		at = time.Now()
	}
	if at.After(f.printed) {
		f.printed = at
	}
}

// isRefused reports whether the last that the program printed is that its provider refused a
// request of the run's own session. Agents that it started have sessions of their own.
func (f *follower) isRefused() bool {
	t, r := &f.transcript, f.refused
	return r.At.After(f.printed) && !t.failed && (t.session == "" || t.session == r.Session)
}

// refusal returns the problem at which the program waits for its provider; none if it goes on, or
// if a run that starts again later would be no better.
func (f *follower) refusal() blocker {
	if !f.isRefused() {
		return none
	}
	switch b := f.format.blockerIn(f.refused.Words); {
	case b == busy:
		return throttled
	case b == limited, b == throttled, b == overloaded && !f.transcript.acted:
		return b
	}
	return none
}

// waitsLong reports whether the program waits for its provider for longer than a moment.
func (f *follower) waitsLong(now time.Time) bool {
	if f.refusal() == none {
		return false
	}
	until, named := quota.Reset(f.refused.Words, f.refused.At)
	return named && until.Sub(now) > shortWait || now.Sub(f.refused.At) > longestTry
}

// concludeWait makes the outcome of a run that was ended since its program waited for its
// provider: its task waits instead, and no process. It reports false if it can't be seen any more
// for what.
func (g *Agent) concludeWait(j task.Job, exit task.Exit, m *meter) (task.Outcome, bool) {
	if exit.Cause != task.CauseInterrupted || exit.Reason != errLongWait.Error() || m.output == nil {
		return task.Outcome{}, false
	}
	kind := m.output.refusal()
	if kind == none {
		return task.Outcome{}, false
	}
	t := m.output.transcript
	t.done, t.failed, t.text = true, true, ""
	t.message, t.blocker = m.output.refused.Words, kind
	if until, named := quota.Reset(t.message, m.output.refused.At); named {
		t.resets = until.Unix()
	}
	reply, _ := t.result(j) // t is done, so it has a result
	m.add(&reply.result)
	exit.Cause, exit.Reason = "", ""
	o := task.Outcome{Result: g.complete(j, exit, reply), Exit: exit}
	applyBlocker(&o, reply, overspent(j, reply.result) != nil)
	return o, true
}
