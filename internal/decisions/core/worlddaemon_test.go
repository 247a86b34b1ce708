package core_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// The daemon's work on the tasks of a world.

// look does the daemon's work for a task in its state.
func (w *world) look(t *core.Task) {
	if t == nil {
		return
	}
	switch t.State {
	case task.Received, task.Held:
		w.judge(t)
	case task.Queued:
		w.start(t)
	case task.Waiting:
		w.tend(t)
	case task.Review:
		if w.seen(t).agent == overseen {
			w.oversee(t, w.pick(3))
			return
		}
		w.do(&core.ReviewDue{Task: t.Seq, Request: w.seen(t).request(), Result: w.results[t.Seq]})
	case task.Done:
		w.show(t)
	case task.Running:
		w.recoverRun(t)
	}
}

// judge judges a task again; the command may come much later.
func (w *world) judge(t *core.Task) {
	if core.Unread(t.Task) {
		return
	}
	if conversation.Suspended(t.Task) {
		if w.pick(2) == 0 {
			w.do(&core.Wake{Task: t.Seq, Attempt: t.Attempt, Data: map[string]any{"from": "ann"}})
		}
		return
	}
	if file, there := w.files[t.ID]; there && file.seq == 0 && t.State == task.Held {
		w.adopt(t, file)
		return
	}
	if conversation.Follows(t.Task) {
		w.follow(t)
		return
	}
	if w.waitsStill(t) || w.takeBack(t) {
		return
	}
	if core.Unbound(t.Task) {
		w.choose(t)
		return
	}
	v := w.verdict(w.seen(t))
	if t.State == task.Received {
		v = w.admit(w.seen(t), 0)
		if w.seen(t).follows() {
			v = conversation.SameCommand(w.seen(t).request(), nil)
		}
	}
	v = core.Held(v, core.Lasting(t.Reasons)...)
	if resting := slices.Equal(t.Reasons, []task.Reason{task.Capacity}); resting && w.now.Before(t.Until) {
		return
	}
	if slices.Contains(t.Reasons, task.ProviderLimit) && w.now.Before(t.Until) {
		v = core.HeldUntil(v, task.ProviderLimit, t.Until)
	}
	w.later(&core.Judge{Task: t.Seq, Seen: core.See(t.Task), Request: w.seen(t).request(), Verdict: v})
}

// follow ends a task with the outcome of the one that it follows, if that is done.
func (w *world) follow(t *core.Task) {
	finish := &core.Finish{Task: t.Seq, Seen: core.See(t.Task), Status: envelope.Failed, Kind: envelope.DependencyFailed, Result: []byte("none"), NoReview: true, Show: task.KindTaskFinished}
	if leader := w.state.Latest(names[0]); leader != nil {
		if leader.State != task.Done {
			return
		}
		finish.Status, finish.Kind, finish.Result = cmp.Or(leader.Status, envelope.Failed), leader.Kind, w.results[leader.Seq]
	}
	w.later(finish)
}

// later does a command now, or keeps it until its facts are old.
func (w *world) later(c core.Command) {
	if w.pick(2) == 0 {
		w.stale = append(w.stale, c)
		return
	}
	w.do(c)
}

// old does a command whose facts are old.
func (w *world) old() {
	if len(w.stale) == 0 {
		return
	}
	i := w.pick(len(w.stale))
	c := w.stale[i]
	w.stale = slices.Delete(w.stale, i, i+1)
	w.do(c)
}

// adopt accepts or refuses a result file of another program.
func (w *world) adopt(t *core.Task, file resultFile) {
	agent := w.seen(t).agent
	if agent == asksPre || agent == asksPost || agent == overseen {
		delete(w.files, t.ID) // it goes to the history
		return
	}
	if strings.HasPrefix(file.body, "bad") {
		w.do(&core.RefuseAnswer{Task: t.Seq, Seen: core.See(t.Task), Data: map[string]any{"file": file.body}})
		if t.State == task.Held {
			delete(w.files, t.ID) // a person removes it
		}
		return
	}
	w.do(&core.TakeAnswer{Task: t.Seq, Seen: core.See(t.Task), Result: envelope.Result{TaskID: t.ID, Status: envelope.OK}, Bytes: []byte(file.body)})
}

// start intends to run a queued task if a slot is free and no reason holds it.
func (w *world) start(t *core.Task) {
	if w.takeBack(t) {
		return
	}
	v := w.verdict(w.seen(t))
	pre := slices.Contains(v.Hold, task.Approval)
	if !v.Admit || len(v.Hold) > 0 && !(pre && len(v.Hold) == 1 && core.Covers(t.Start, v, t.Began, w.now)) {
		w.later(&core.Judge{Task: t.Seq, Seen: core.See(t.Task), Request: w.seen(t).request(), Verdict: v})
		return
	}
	if file, there := w.files[t.ID]; there && file.seq == 0 {
		w.adopt(t, file)
		return
	}
	c := &core.Intend{Task: t.Seq, Attempt: t.Attempt, Agent: t.Agent, To: task.Running, Request: w.seen(t).request(), Run: task.Run{Task: t.Seq, Attempt: t.Attempt + 1, ID: "run", Intent: w.now, Terms: v.Terms}}
	if t.Agent == remote {
		c.Run.At = task.Assignment{Runner: "gpu-1", Incarnation: "i", Token: "token"}
	}
	if w.seen(t).agent == fetches {
		c.To = task.Waiting
	} else if w.busy() >= slots {
		return
	} else if w.pick(12) == 0 { // something else is at the path of its run directory
		w.later(&core.HoldQueued{Task: t.Seq, Attempt: t.Attempt, Reason: task.RunDirectory, Why: "runs/" + string(t.ID) + " is a file"})
		return
	} else if t.Agent == remote && w.pick(12) == 0 {
		w.later(&core.HoldQueued{Task: t.Seq, Attempt: t.Attempt, Reason: task.NoRunner, Why: "runner gpu-1 takes at most internal"})
		return
	}
	if pre && !w.approved[agreed(t.Seq, v.Digest)] {
		w.fail("%s is started as %q, to which nobody agreed", t.ID, v.Digest)
	}
	c.Spending = w.spending(t, c.Run)
	name := task.RunName{Task: t.Seq, Attempt: c.Run.Attempt}
	defer w.await(t)
	if w.do(c); t.State == task.Running && w.state.Task(t.Seq) == t && t.Attempt == name.Attempt {
		w.starts = append(w.starts, name)
	}
}

func agreed(seq int64, digest string) string { return fmt.Sprint(seq, " ", digest) }

// busy returns the number of taken slots.
func (w *world) busy() (n int) {
	for _, name := range w.names() {
		if !w.runs[name].ended {
			n++
		}
	}
	return n + len(w.starts)
}

// names lists the runs of the keeper in a fixed order.
func (w *world) names() []task.RunName {
	return slices.SortedFunc(maps.Keys(w.runs), func(a, b task.RunName) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt))
	})
}

// begin has the keeper begin an intended run.
func (w *world) begin() {
	if len(w.starts) == 0 {
		return
	}
	i := w.pick(len(w.starts))
	name := w.starts[i]
	w.starts = slices.Delete(w.starts, i, i+1)
	t := w.state.Task(name.Task)
	if w.pick(10) == 0 { // the machine has too little of something
		w.do(&core.Void{Task: name.Task, Attempt: name.Attempt})
		return
	}
	w.note("begin attempt %d of %s.%d", name.Attempt, t.ID, t.Revision)
	if t.State != task.Running || t.Attempt != name.Attempt {
		w.fail("%v of %s begins, and the task is %s in attempt %d", name, t.ID, t.State, t.Attempt)
	}
	for other, r := range w.runs {
		if r.id == t.ID && !r.ended {
			w.fail("%v and %v of %s run at the same time", other, name, t.ID)
		}
	}
	if w.runs[name] != nil {
		w.fail("%v of %s begins twice", name, t.ID)
	}
	w.runs[name] = &run{id: t.ID, seq: name.Task}
	if w.begun[t.Seq]++; w.begun[t.Seq] > 1+w.allowed[t.Seq] {
		w.fail("%s is begun %d times", t.ID, w.begun[t.Seq])
	}
}

// endOne ends a run, and reports it to the daemon, perhaps twice.
func (w *world) endOne() {
	runs := w.names()
	if len(runs) == 0 {
		return
	}
	name := runs[w.pick(len(runs))]
	if r := w.runs[name]; !r.ended {
		again := w.pick(4) == 0
		if t := w.state.Task(name.Task); t != nil && w.seen(t).agent == speaks {
			again = again || w.pick(2) == 0
		}
		r.ended, r.ok, r.again = true, w.pick(3) > 0 && !r.end, again
	}
	w.received(name)
}

func (w *world) received(name task.RunName) {
	r, t := w.runs[name], w.state.Task(name.Task)
	if t == nil {
		return
	}
	if file, there := w.files[t.ID]; there && file.seq == 0 && w.seen(t).agent == asksPost {
		delete(w.files, t.ID)
	}
	how := task.Run{Task: name.Task, Attempt: name.Attempt, Started: w.now, Finished: w.now, Tokens: w.cost(name)}
	body := []byte(fmt.Sprintf("answer of %d.%d", name.Task, name.Attempt))
	switch {
	case r.end:
		w.do(&core.Finish{Task: t.Seq, Run: how, Status: envelope.Stopped, Kind: envelope.Cancelled, Result: body, Show: task.KindTaskCancelled})
	case r.again && w.seen(t).agent == speaks && w.allowed[t.Seq] < 3:
		w.speak(t, how)
	case r.ok:
		w.finish(t, how, envelope.OK, "", body)
	case r.again && w.seen(t).agent == repeats && name.Attempt < 3:
		w.allowed[t.Seq]++
		w.do(&core.Retry{Task: t.Seq, Until: w.now.Add(5 * time.Second), Run: how, Data: map[string]any{}})
	case r.again && w.pick(2) == 0:
		w.allowed[t.Seq]++
		w.do(&core.PutBack{Task: t.Seq, Reason: task.AuthRequired, Run: how})
	case r.again && w.pick(2) == 0:
		w.allowed[t.Seq]++
		w.do(&core.PutBack{Task: t.Seq, Reason: task.ProviderLimit, Until: w.now.Add(time.Minute), Run: how, Data: map[string]any{}})
	case r.again && w.pick(2) == 0:
		w.do(&core.KeepUnread{Task: t.Seq, Attempt: name.Attempt, Why: "input/output error"})
	default:
		w.finish(t, how, envelope.Failed, envelope.AgentCrashed, body)
	}
}

// speak ends a run whose agent asks a question.
func (w *world) speak(t *core.Task, how task.Run) {
	how.Cause = task.CauseNoAnswer
	events := w.decide(&core.EndRun{Task: t.Seq, Run: how})
	if len(events) == 0 {
		return
	}
	w.allowed[t.Seq]++
	wait := w.decide(&core.Wait{Task: t.Seq, Seen: core.See(t.Task), Reason: task.Reply})
	w.commit(append(events, wait...), w.offset)
}

func (w *world) finish(t *core.Task, how task.Run, status envelope.Status, kind envelope.Kind, body []byte) {
	w.do(&core.Finish{
		Task: t.Seq, Run: how, Status: status, Kind: kind, Result: body, Show: task.KindTaskFinished,
		NoReview: w.seen(t).agent != asksPost, Terms: task.Terms{Approval: envelope.ApprovalPost},
		Overseen: w.seen(t).agent == overseen && status == envelope.OK,
	})
}

// recoverRun continues a run after a restart of the daemon.
func (w *world) recoverRun(t *core.Task) {
	name := task.RunName{Task: t.Seq, Attempt: t.Attempt}
	r := w.runs[name]
	switch {
	case slices.Contains(w.starts, name):
	case r == nil && w.begun[t.Seq] == 0: // its directory shows that nothing began
		w.do(&core.Void{Task: t.Seq, Attempt: t.Attempt, Keep: true, Show: true})
	case r == nil:
		how := task.Run{Task: t.Seq, Attempt: t.Attempt, Cause: task.CauseLost, Finished: w.now}
		w.finish(t, how, envelope.Failed, envelope.RunLost, []byte("lost"))
	case r.ended:
		w.received(name)
	}
}

// tend checks a task that waits for its agent.
func (w *world) tend(t *core.Task) {
	if file, there := w.files[t.ID]; there && file.seq == 0 {
		if strings.HasPrefix(file.body, "bad") {
			w.do(&core.RefuseAnswer{Task: t.Seq, Seen: core.See(t.Task), Data: map[string]any{"file": file.body}})
		}
		delete(w.files, t.ID)
		return
	}
	w.later(&core.Lapse{Task: t.Seq, Seen: core.See(t.Task)})
}

// show puts the result file of a task that is over, or its entry in the history.
func (w *world) show(t *core.Task) {
	if t.Put && t.Delivered {
		return
	}
	if t.Latest {
		if was := w.files[t.ID]; was.seq > t.Seq {
			w.fail("the result of %d takes the place of that of %d", t.Seq, was.seq)
		}
		if w.seen(t).agent == asksPost && t.Status == envelope.OK && !w.approved[agreed(t.Seq, t.ResultSum)] {
			w.fail("the answer of %s is shown, and nobody agreed to it", t.ID)
		}
		if w.seen(t).agent == overseen && t.Status == envelope.OK && !w.passed[t.Seq] {
			w.fail("the answer of %s is shown, and its overseer has not approved", t.ID)
		}
		w.files[t.ID] = resultFile{seq: t.Seq, body: string(w.results[t.Seq])}
	}
	if w.results[t.Seq] == nil {
		w.fail("revision %d of %s is over, and has no result", t.Revision, t.ID)
	}
	w.doing = nil
	w.note("Shown")
	w.note("    %s Settled", w.nameOf(core.Event{Task: t.Seq}))
	w.commit([]core.Event{{Task: t.Seq, Change: &core.Settled{}}}, w.offset)
}
