package owner

import (
	"context"
	"os"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	process "mailboxd/internal/running/runner"
)

// note takes what a run says or asks while it works.
func (o *Owner) note(m fleet.Note, answer func(fleet.NoteReply)) {
	o.mu.Lock()
	one := o.runs[m.Token]
	known := one != nil && one.at.Runner == m.Runner && one.at.Incarnation == m.Incarnation && !one.delivered
	o.mu.Unlock()
	reply := fleet.NoteReply{Token: m.Token, Number: m.Number}
	if !known {
		reply.Refused = "no task waits for the run"
		answer(reply)
		return
	}
	if !o.busy.enter(m.Runner) {
		return
	}
	o.background(func(context.Context) {
		defer o.busy.leave(m.Runner)
		one.notes.Lock()
		defer one.notes.Unlock()
		if err := o.takeNote(one, m, &reply); err != nil {
			o.opts.Log.Warn().Err(err).Str("runner", m.Runner).Msg("note of a run not taken")
			return // it comes again
		}
		answer(reply)
	})
}

// takeNote passes a note on, once. A question is asked again as often as it comes.
func (o *Owner) takeNote(one *run, m fleet.Note, reply *fleet.NoteReply) error {
	j := one.job
	if m.Ask != nil && j.Ask != nil && !m.Ask.Made {
		decision, err := j.Ask(m.Ask.Call, false)
		if err == nil && decision.Answer != "" {
			reply.Decision = &decision
		}
		return err
	}
	if m.Number <= one.lastNote {
		return nil
	}
	var err error
	switch {
	case m.Report != nil && j.Report != nil:
		j.Report(*m.Report)
	case m.Used != nil && j.Used != nil:
		err = j.Used(m.Used.Kind, m.Used.Use)
	case m.Ask != nil && j.Ask != nil:
		_, err = j.Ask(m.Ask.Call, true)
	case m.Cost != nil:
		reply.Stop = o.spend(one, *m.Cost)
	}
	if err == nil {
		one.lastNote = m.Number
	}
	return err
}

// spend counts what a run has spent, and returns why it is to end; "" if it goes on.
func (o *Owner) spend(one *run, cost envelope.Cost) string {
	if one.job.Meter == nil {
		return ""
	}
	one.settling.Lock()
	defer one.settling.Unlock()
	if err := one.job.Meter(cost); err != nil {
		o.cancel(one)
		return err.Error()
	}
	return ""
}

// Times of live lines.
const (
	followAfter = 200 * time.Millisecond // a shorter run has none
	followFor   = 30 * time.Second
	followAgain = 20 * time.Second
)

// followRuns has the runners of runs that take a while send their output as it comes.
func (o *Owner) followRuns(now time.Time) {
	var all []*run
	o.mu.Lock()
	for _, one := range o.runs {
		if !one.start.IsZero() && !one.delivered && one.job.Dir != "" && now.Sub(one.start) > followAfter && now.Sub(one.followed) > followAgain {
			one.followed = now
			all = append(all, one)
		}
	}
	o.mu.Unlock()
	for _, one := range all {
		o.followRun(one)
	}
}

// followRun writes the output of a run into its directory as it comes.
func (o *Owner) followRun(one *run) {
	o.mu.Lock()
	follows := one.follow != nil
	o.mu.Unlock()
	if !follows {
		stop, err := o.link.Follow(one.at.Runner, one.token(), func(l fleet.LogLine) {
			o.mu.Lock()
			over := one.delivered
			o.mu.Unlock()
			if !over {
				o.files.writeLine(one.job.Dir, l)
			}
		})
		if err != nil {
			return // the next tick tries again
		}
		o.mu.Lock()
		over := one.delivered
		if !over {
			one.follow = stop
		}
		o.mu.Unlock()
		if over {
			stop()
			return
		}
	}
	o.order(one.at.Runner, fleet.Order{Follow: one.token(), For: followFor})
}

// writeLine writes a part of the output of a run. The complete output comes at its end.
func (f *files) writeLine(dir string, l fleet.LogLine) {
	if l.Offset < 0 || l.Offset+int64(len(l.Text)) > f.MaxFile {
		return
	}
	root, err := openDir(dir)
	if err != nil {
		return
	}
	defer root.Close()
	file, err := root.OpenFile(process.StdoutFile, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer file.Close()
	_, _ = file.WriteAt(l.Text, l.Offset)
}
