package core_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/core"
	"mailboxd/internal/task"
)

// A world is everything outside the core, in memory: task files, the journal, runs,
// result files, people and the clock. It does one random thing after another, loses
// what isn't durable in crashes, and holds what it sees to the promises of the daemon.
type world struct {
	pick func(n int) int // chooses a number below n
	bug  *mutant         // a planted fault; nil: none
	now  time.Time
	cfg  core.Config
	err  error
	log  []string // what happened, for people; only when a schedule is told again
	tell bool

	// Durable.
	lines   []line
	journal []group
	runs    map[task.RunName]*run // of the keeper, which outlives the daemon
	files   map[envelope.ID]resultFile
	rules   int // changes what approvals are asked for
	offset  int // how many lines the journal has

	// Volatile.
	state  *core.State
	stale  []core.Command // with facts that were gathered a while ago
	starts []task.RunName // intended, and not begun

	// What was seen, for the checks.
	approved map[string]bool // what a person agreed to: a task and a digest
	shown    map[int64]int   // how often a revision ended
	requests map[int64]line
	results  map[int64][]byte
	tokens   map[int64]string        // the lease that is in force
	leased   map[int64]time.Time     // and its end
	begun    map[int64]int           // how often a revision was begun
	allowed  map[int64]int           // how often it may be
	asked    map[*core.Answer]string // the digest that a person looked at
	doing    core.Command
	steps    int
	crashes  int
}

// A line is a request in a task file.
type line struct {
	id      envelope.ID
	content int
	agent   string
}

func (l line) hash() string { return fmt.Sprintf("%s/%s/%d", l.id, l.agent, l.content) }

func (l line) request() envelope.Task {
	return envelope.Task{ID: l.id, Agent: l.agent, Requester: "ann", Type: "work", Hash: l.hash()}
}

// The agents of the world, by what they are there for.
const (
	plain    = "plain"    // runs once
	repeats  = "repeats"  // is idempotent, and has two more attempts
	asksPre  = "pre"      // starts after an approval
	asksPost = "post"     // shows its answer after an approval
	fetches  = "fetches"  // fetches its tasks
	windowed = "windowed" // waits for a change window
)

var agents = []string{plain, repeats, asksPre, asksPre, asksPost, fetches, windowed}

const (
	slots = 2
	ids   = 4
)

// A group is what one transaction makes durable.
type group struct {
	events []core.Event
	offset int
}

// A run is what the keeper knows of an attempt.
type run struct {
	id    envelope.ID
	seq   int64
	ended bool
	ok    bool
	again bool // it asks for another attempt
	end   bool // somebody cancels it
}

// A resultFile is what lies in results/.
type resultFile struct {
	seq  int64 // 0: another program has placed it
	body string
}

func newWorld(pick func(int) int) *world {
	w := &world{
		pick: pick, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), cfg: core.Config{ApprovalTTL: 40 * time.Second},
		runs: map[task.RunName]*run{}, files: map[envelope.ID]resultFile{}, state: core.NewState(),
		approved: map[string]bool{}, shown: map[int64]int{}, requests: map[int64]line{}, results: map[int64][]byte{}, tokens: map[int64]string{},
		leased: map[int64]time.Time{}, begun: map[int64]int{}, allowed: map[int64]int{}, asked: map[*core.Answer]string{},
	}
	return w
}

func seeded(seed uint64) func(int) int { return rand.New(rand.NewPCG(seed, 7)).IntN }

// fail keeps the first broken promise.
func (w *world) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

func (w *world) note(format string, args ...any) {
	if w.tell {
		w.log = append(w.log, fmt.Sprintf(format, args...))
	}
}

// play does so many random steps, and then lets everything come to its end.
func (w *world) play(steps int) error {
	for range steps {
		if w.step(); w.err != nil {
			return w.err
		}
	}
	w.settle()
	return w.err
}

func (w *world) step() {
	w.steps++
	w.now = w.now.Add(time.Duration(1+w.pick(3)) * time.Second)
	switch n := w.pick(100); {
	case n < 12:
		w.append()
	case n < 24:
		w.takeLines()
	case n < 40:
		w.look(w.any())
	case n < 49:
		w.begin()
	case n < 57:
		w.endOne()
	case n < 70:
		w.person(w.any())
	case n < 76:
		w.program(w.any())
	case n < 79:
		w.place(w.any())
	case n < 89:
		w.old()
	case n < 92:
		w.changeRules()
	case n < 95:
		w.now = w.now.Add(time.Minute)
	default:
		w.crash()
	}
}

// changeRules is an operator who edits the configuration: what waits is judged again.
func (w *world) changeRules() {
	w.rules++
	for _, t := range w.open() {
		if t.State == task.Held {
			w.judge(t)
		}
	}
}

// any is one of the tasks; nil when there is none.
func (w *world) any() *core.Task {
	id := envelope.ID(fmt.Sprintf("t%d", w.pick(ids)))
	all := w.state.Revisions(id)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1-w.pick(min(2, len(all)))]
}

func (w *world) append() {
	w.lines = append(w.lines, line{id: envelope.ID(fmt.Sprintf("t%d", w.pick(ids))), content: w.pick(2), agent: agents[w.pick(len(agents))]})
}

// verdict is what policy says of a request now.
func (w *world) verdict(l line) task.Verdict {
	v := task.Verdict{Admit: true, Digest: fmt.Sprintf("%s rules %d", l.hash(), w.rules)}
	switch l.agent {
	case asksPre:
		v.Hold, v.Terms.Approval = []task.Reason{task.Approval}, envelope.ApprovalPre
	case asksPost:
		v.Terms.Approval = envelope.ApprovalPost
	case windowed:
		if at := w.now.Truncate(time.Minute).Add(30 * time.Second); w.now.Before(at) {
			v.Hold, v.Until = []task.Reason{task.ChangeWindow}, at
		}
	}
	if l.content == 1 && w.rules%5 == 4 {
		v = task.Verdict{Findings: envelope.Findings{{Kind: envelope.PolicyViolation, Message: "is not allowed now"}}}
	}
	return v
}

// takeLines accepts some lines, with the offset behind them in the same group.
func (w *world) takeLines() {
	for n := 1 + w.pick(3); n > 0 && w.offset < len(w.lines) && w.err == nil; n-- {
		l := w.lines[w.offset]
		last := w.state.Latest(l.id)
		if last != nil && last.Hash == l.hash() {
			w.commit(nil, w.offset+1)
			continue
		}
		c := &core.Accept{Request: l.request(), Dialect: envelope.AINL, Verdict: w.verdict(l), File: "tasks/a.jsonl", Offset: int64(w.offset), Received: w.now}
		events := w.decide(c)
		core.Number(events, w.next())
		w.commit(events, w.offset+1)
	}
}

// next is the Seq of the next task.
func (w *world) next() int64 { return int64(len(w.requests) + 1) }

// decide asks the core, perhaps with a planted fault.
func (w *world) decide(c core.Command) []core.Event {
	w.doing = c
	if w.bug != nil && w.bug.command != nil {
		w.bug.command(w, c)
	}
	events, err := core.Decide(w.state, c, w.cfg, w.now)
	if w.bug != nil && w.bug.events != nil {
		events = w.bug.events(w, c, events)
	}
	if w.tell {
		answer := strings.TrimPrefix(fmt.Sprintf("%T", c), "*core.")
		if err != nil {
			answer += ": " + err.Error()
		}
		w.note("%s", answer)
		for _, e := range events {
			w.note("    %s", strings.Join(strings.Fields(w.nameOf(e)+" "+string(e.Kind)+" "+brief(e.Change)), " "))
		}
	}
	if _, forbidden := errors.AsType[*core.ForbiddenError](err); forbidden && (len(events) != 1 || events[0].Change != nil) {
		w.fail("a person who may not decide changed something: %+v", events)
	}
	return events
}

// nameOf is the revision that an event is about.
func (w *world) nameOf(e core.Event) string {
	if t := w.state.Task(e.Task); t != nil {
		return fmt.Sprintf("%s.%d", t.ID, t.Revision)
	}
	return "new"
}

// brief is a change in a few words.
func brief(c core.Change) string {
	switch c := c.(type) {
	case nil:
		return ""
	case *core.Added:
		return fmt.Sprintf("adds %s.%d, %s", c.Task.ID, c.Task.Revision, c.Task.State)
	case *core.Moved:
		return describe(c)
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", c), "*core.")
}

func describe(c *core.Moved) string {
	words := fmt.Sprintf("%s -> %s", c.From, c.To)
	if len(c.Reasons) > 0 {
		words += fmt.Sprintf(" %v", c.Reasons)
	}
	if !c.Until.IsZero() {
		words += " until " + c.Until.Format(time.TimeOnly)
	}
	if c.To == task.Done && c.Status != "" {
		words += " as " + string(c.Status)
	}
	return words
}

// do decides a command and makes its events durable.
func (w *world) do(c core.Command) bool {
	events := w.decide(c)
	w.commit(events, w.offset)
	return len(events) > 0
}

// commit makes a group durable, unless a crash comes first, and applies it.
func (w *world) commit(events []core.Event, offset int) {
	if len(events) > 0 && w.pick(40) == 0 {
		w.note("crash before the group")
		w.crash()
		return
	}
	for _, e := range events {
		w.check(e)
	}
	kept := events
	if w.bug != nil && w.bug.journal != nil {
		kept = w.bug.journal(events)
	}
	w.journal = append(w.journal, group{kept, offset})
	w.offset = offset
	core.Apply(w.state, events)
	w.promises()
}

// seen is a task's line.
func (w *world) seen(t *core.Task) line { return w.requests[t.Seq] }

// look does what the daemon does for a task as it stands.
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
		w.do(&core.ReviewDue{Task: t.Seq, Request: w.seen(t).request(), Result: w.results[t.Seq]})
	case task.Done:
		w.show(t)
	case task.Running:
		w.recoverRun(t)
	}
}

// judge judges a task again; perhaps the command comes much later.
func (w *world) judge(t *core.Task) {
	if core.Unread(t.Task) {
		return
	}
	if file, there := w.files[t.ID]; there && file.seq == 0 && t.State == task.Held {
		w.adopt(t, file)
		return
	}
	v := core.Held(w.verdict(w.seen(t)), core.Lasting(t.Reasons)...)
	if resting := slices.Equal(t.Reasons, []task.Reason{task.Capacity}); resting && w.now.Before(t.Until) {
		return
	}
	w.later(&core.Judge{Task: t.Seq, Seen: core.See(t.Task), Request: w.seen(t).request(), Verdict: v})
}

// later does a command now, or keeps it for later, when its facts may be old.
func (w *world) later(c core.Command) {
	if w.pick(2) == 0 {
		w.stale = append(w.stale, c)
		return
	}
	w.do(c)
}

// old does a command whose facts were gathered a while ago.
func (w *world) old() {
	if len(w.stale) == 0 {
		return
	}
	i := w.pick(len(w.stale))
	c := w.stale[i]
	w.stale = slices.Delete(w.stale, i, i+1)
	w.do(c)
}

// adopt takes a result file that another program has placed, or refuses it.
func (w *world) adopt(t *core.Task, file resultFile) {
	agent := w.seen(t).agent
	if agent == asksPre || agent == asksPost {
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

// start intends to run a queued task when a slot is free, and nothing holds it.
func (w *world) start(t *core.Task) {
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
	c := &core.Intend{Task: t.Seq, Attempt: t.Attempt, To: task.Running, Run: task.Run{Task: t.Seq, Attempt: t.Attempt + 1, ID: "run", Intent: w.now, Terms: v.Terms}}
	if w.seen(t).agent == fetches {
		c.To = task.Waiting
	} else if w.busy() >= slots {
		return
	}
	if pre && !w.approved[agreed(t.Seq, v.Digest)] {
		w.fail("%s is started as %q, to which nobody agreed", t.ID, v.Digest)
	}
	name := task.RunName{Task: t.Seq, Attempt: c.Run.Attempt}
	if w.do(c); t.State == task.Running && w.state.Task(t.Seq) == t && t.Attempt == name.Attempt {
		w.starts = append(w.starts, name)
	}
}

func agreed(seq int64, digest string) string { return fmt.Sprint(seq, " ", digest) }

// busy is how many tasks have a slot.
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

// endOne ends a run, and tells the daemon, which may be told once more.
func (w *world) endOne() {
	names := w.names()
	if len(names) == 0 {
		return
	}
	name := names[w.pick(len(names))]
	if r := w.runs[name]; !r.ended {
		r.ended, r.ok, r.again = true, w.pick(3) > 0 && !r.end, w.pick(4) == 0
	}
	w.heard(name)
}

// heard tells the core how a run ended.
func (w *world) heard(name task.RunName) {
	r, t := w.runs[name], w.state.Task(name.Task)
	if t == nil {
		return
	}
	if file, there := w.files[t.ID]; there && file.seq == 0 && w.seen(t).agent == asksPost {
		delete(w.files, t.ID)
	}
	how := task.Run{Task: name.Task, Attempt: name.Attempt, Started: w.now, Finished: w.now}
	body := []byte(fmt.Sprintf("answer of %d.%d", name.Task, name.Attempt))
	switch {
	case r.end:
		w.do(&core.Finish{Task: t.Seq, Run: how, Status: envelope.Stopped, Kind: envelope.Cancelled, Result: body, Show: task.KindTaskCancelled})
	case r.ok:
		w.finish(t, how, envelope.OK, "", body)
	case r.again && w.seen(t).agent == repeats && name.Attempt < 3:
		w.allowed[t.Seq]++
		w.do(&core.Again{Task: t.Seq, Until: w.now.Add(5 * time.Second), Run: how, Data: map[string]any{}})
	case r.again && w.pick(2) == 0:
		w.allowed[t.Seq]++
		w.do(&core.PutBack{Task: t.Seq, Reason: task.AuthRequired, Run: how})
	case r.again && w.pick(2) == 0:
		w.do(&core.KeepUnread{Task: t.Seq, Attempt: name.Attempt, Why: "input/output error"})
	default:
		w.finish(t, how, envelope.Failed, envelope.AgentCrashed, body)
	}
}

func (w *world) finish(t *core.Task, how task.Run, status envelope.Status, kind envelope.Kind, body []byte) {
	w.do(&core.Finish{
		Task: t.Seq, Run: how, Status: status, Kind: kind, Result: body, Show: task.KindTaskFinished,
		Review: w.seen(t).agent == asksPost, Terms: task.Terms{Approval: envelope.ApprovalPost},
	})
}

// recoverRun takes up a run whose daemon is gone.
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
		w.heard(name)
	}
}

// tend looks after a task that waits for its agent.
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

// program is a program that fetches a task, renews its lease, or answers.
func (w *world) program(t *core.Task) {
	if t == nil || t.State != task.Waiting {
		return
	}
	token := []string{t.Token, "", "another"}[w.pick(3)]
	switch w.pick(3) {
	case 0:
		w.do(&core.Claim{Task: t.Seq, By: core.By{Who: "editor"}, Token: fmt.Sprintf("token %d", w.steps), Lasts: 20 * time.Second, Ended: w.pick(5) == 0})
	case 1:
		entitled := t.ClaimedAt(w.now) && token == w.tokens[t.Seq]
		if w.do(&core.Renew{Task: t.Seq, Attempt: t.Attempt, Token: token, Lasts: 20 * time.Second}) && !entitled {
			w.fail("the lease of %s is renewed by %q, and %q has it", t.ID, token, w.tokens[t.Seq])
		}
		w.leased[t.Seq] = t.Until
	case 2:
		if core.Entitled(t, t.Attempt, token, w.now) != nil {
			return
		}
		if t.ClaimedAt(w.now) && token != w.tokens[t.Seq] {
			w.fail("%s is answered by %q, and %q has the lease", t.ID, token, w.tokens[t.Seq])
		}
		w.finish(t, task.Run{Task: t.Seq, Attempt: t.Attempt, Started: w.now, Finished: w.now}, envelope.OK, "", fmt.Appendf(nil, "fetched %d", t.Seq))
	}
}

// person is somebody at the command line.
func (w *world) person(t *core.Task) {
	if t == nil {
		return
	}
	by, request, seen := core.By{Who: "root"}, w.seen(t).request(), core.See(t.Task)
	switch w.pick(8) {
	case 0, 1, 2:
		c := &core.Answer{Task: t.Seq, Seen: seen, Decision: task.Approved, Person: w.approver(), Digest: digestAsked(t), Request: request, Verdict: w.verdict(w.seen(t)), Result: w.results[t.Seq]}
		if w.pick(4) == 0 {
			c.Decision = task.Denied
		}
		w.asked[c] = digestAsked(t)
		if w.pick(2) == 0 { // they take their time
			w.stale = append(w.stale, c)
			return
		}
		w.do(c)
	case 3:
		w.later(&core.Hold{Task: t.Seq, Seen: seen, By: by})
	case 4, 5:
		w.release(t)
	case 6:
		if t.State == task.Running {
			if r := w.runs[task.RunName{Task: t.Seq, Attempt: t.Attempt}]; r != nil && !r.ended {
				r.end = true
			}
			return
		}
		w.later(&core.Cancel{Task: t.Seq, Seen: seen, By: by, Request: request, Result: w.results[t.Seq]})
	case 7:
		if events := w.decide(&core.Resubmit{Task: t.Seq, By: by, Verdict: w.verdict(w.seen(t))}); len(events) > 0 {
			core.Number(events, w.next())
			w.commit(events, w.offset)
		}
	}
}

// digestAsked is the digest of what an approver is asked about a task.
func digestAsked(t *core.Task) string {
	switch {
	case t.State == task.Review && t.Show != nil:
		return t.Show.Digest
	case t.Start != nil:
		return t.Start.Digest
	}
	return ""
}

func (w *world) approver() core.Person {
	if w.pick(4) == 0 {
		return core.Person{Names: []string{"ann"}} // who asked for everything
	}
	return core.Person{Names: []string{"bob"}}
}

// release releases a task, or has its answer read again.
func (w *world) release(t *core.Task) {
	unread := core.Unread(t.Task)
	w.do(&core.Release{Task: t.Seq, Seen: core.See(t.Task), By: core.By{Who: "root"}})
	if now := w.state.Task(t.Seq); unread && now != nil && core.Unread(now.Task) && !now.Until.IsZero() {
		w.do(&core.Reread{Task: now.Seq, Attempt: now.Attempt})
		if name := (task.RunName{Task: now.Seq, Attempt: now.Attempt}); w.state.Task(t.Seq).State == task.Running && w.runs[name] != nil {
			w.runs[name].again = false
			w.heard(name)
		}
	}
}

// place is another program that places a result file.
func (w *world) place(t *core.Task) {
	if t == nil || t.State == task.Done || w.files[t.ID] != (resultFile{}) {
		return
	}
	w.files[t.ID] = resultFile{body: []string{"placed", "bad"}[w.pick(2)]}
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
		w.files[t.ID] = resultFile{seq: t.Seq, body: string(w.results[t.Seq])}
	}
	if w.results[t.Seq] == nil {
		w.fail("revision %d of %s is over, and has no result", t.Revision, t.ID)
	}
	w.do(&core.Shown{Task: t.Seq})
}

// crash loses what isn't durable, and starts again from the journal.
func (w *world) crash() {
	w.crashes++
	w.note("crash")
	if w.pick(3) == 0 { // the machine
		for name, r := range w.runs {
			if !r.ended {
				delete(w.runs, name)
			}
		}
	}
	again := core.NewState()
	for _, g := range w.journal {
		core.Apply(again, g.events)
	}
	if a, b := dump(again), dump(w.state); a != b {
		w.fail("the state is not what its events make it:\n%s\nis\n%s", a, b)
	}
	w.state, w.stale, w.starts = again, nil, nil
	for _, t := range w.open() {
		if t.State == task.Running {
			w.recoverRun(t)
		}
	}
}

// open lists the tasks that aren't over, the oldest first.
func (w *world) open() (all []*core.Task) {
	for n := range ids {
		for _, t := range w.state.Revisions(envelope.ID(fmt.Sprintf("t%d", n))) {
			if t.State != task.Done || !t.Put || !t.Delivered {
				all = append(all, t)
			}
		}
	}
	slices.SortFunc(all, func(a, b *core.Task) int { return cmp.Compare(a.Seq, b.Seq) })
	return all
}

func dump(s *core.State) string {
	var b strings.Builder
	for n := range ids {
		for _, t := range s.Revisions(envelope.ID(fmt.Sprintf("t%d", n))) {
			fmt.Fprintf(&b, "%+v %v %+v %+v %+v %s\n", t.Task, t.Began, t.Start, t.Show, t.Run, t.Token)
		}
	}
	return b.String()
}
