package core_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/conversation"
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
	booked  map[task.RunName]*task.Run // what runs have reserved and spent
	rules   int                        // changes what approvals are asked for
	offset  int                        // how many lines the journal has

	// Volatile.
	state  *core.State
	stale  []core.Command // with facts that were gathered a while ago
	starts []task.RunName // intended, and not begun
	waits  map[int64]wait // for a budget

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
	passed   map[int64]bool          // of which answers an overseer approves
	chosen   map[int64]string        // the agent that was chosen for a task
	doing    core.Command
	answer   error // of the core
	steps    int
	crashes  int
}

// A line is a request in a task file.

type line struct {
	id      envelope.ID
	content int
	agent   string
	parent  int64 // the task whose run asks for it; 0: none
	routed  bool  // the line names no agent; agent is the chosen one
}

func (l line) hash() string {
	agent := l.agent
	if l.routed {
		agent = routed
	}
	return string(l.id) + "/" + agent + "/" + string(rune('0'+l.content))
}

func (l line) request() envelope.Task {
	return envelope.Task{ID: l.id, Agent: l.agent, Requester: "ann", Type: "work", Hash: l.hash()}
}

// follows reports whether a task gets the outcome of another one, so that it never runs.
func (l line) follows() bool { return l.agent == follows && l.id != names[0] }

// The agents of the world, by what they are there for.

const (
	plain    = "plain"    // runs once
	repeats  = "repeats"  // is idempotent, and has two more attempts
	asksPre  = "pre"      // starts after an approval
	asksPost = "post"     // shows its answer after an approval
	fetches  = "fetches"  // fetches its tasks
	windowed = "windowed" // waits for a change window
	speaks   = "speaks"   // asks something before it answers
	overseen = "overseen" // has an overseer
	follows  = "follows"  // gets the outcome of t0, whose command it has too
)

var agents = []string{plain, repeats, asksPre, asksPre, asksPost, fetches, windowed, speaks, overseen, follows, spends, shares, routed}

const slots = 3

// names are the ids of all tasks.
var names = []envelope.ID{"t0", "t1", "t2", "t3"}

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
	said  int64
	final bool // it has said all
}

// A resultFile is what lies in results/.

type resultFile struct {
	seq  int64 // 0: another program has placed it
	body string
}

func newWorld(pick func(int) int) *world {
	w := &world{
		pick: pick, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), cfg: core.Config{ApprovalTTL: 40 * time.Second},
		runs: map[task.RunName]*run{}, booked: map[task.RunName]*task.Run{}, waits: map[int64]wait{}, files: map[envelope.ID]resultFile{}, state: core.NewState(),
		approved: map[string]bool{}, shown: map[int64]int{}, requests: map[int64]line{}, results: map[int64][]byte{}, tokens: map[int64]string{},
		leased: map[int64]time.Time{}, begun: map[int64]int{}, allowed: map[int64]int{}, asked: map[*core.Answer]string{}, passed: map[int64]bool{}, chosen: map[int64]string{},
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
	if w.pick(3) == 0 {
		w.now = w.now.Add(12*time.Hour - 90*time.Second) // a day ends meanwhile
	}
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
	case n < 9:
		w.append()
	case n < 15:
		w.ask()
	case n < 25:
		w.takeLines()
	case n < 41:
		w.look(w.any())
	case n < 50:
		w.begin()
	case n < 58:
		w.endOne()
	case n < 60:
		w.meter()
	case n < 72:
		w.person(w.any())
	case n < 78:
		w.program(w.any())
	case n < 81:
		w.putFile(w.any())
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

// any is one of the tasks; nil when there is none.

func (w *world) any() *core.Task {
	id := names[w.pick(len(names))]
	all := w.state.Revisions(id)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1-w.pick(min(2, len(all)))]
}

func (w *world) append() {
	w.lines = append(w.lines, line{id: names[w.pick(len(names))], content: w.pick(2), agent: agents[w.pick(len(agents))]})
}

// verdict is what policy says of a request now.

func (w *world) verdict(l line) task.Verdict {
	v := task.Verdict{Admit: true, Digest: fmt.Sprintf("%s rules %d", l.hash(), w.rules), Terms: l.terms()}
	switch l.agent {
	case routed:
		v.Hold = []task.Reason{task.Routing}
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
		c := &core.Accept{Request: l.request(), Dialect: envelope.AINL, Verdict: w.admit(l, w.children(l.parent)), File: "tasks/a.jsonl", Offset: int64(w.offset), Received: w.now}
		if l.follows() {
			c.Verdict = conversation.SameCommand(c.Request, nil)
		}
		if parent := w.state.Task(l.parent); parent != nil {
			c.Parent = &parent.Task
		}
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
	w.answer = err
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
	case *core.RunIntended:
		return reserves(&c.Run)
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
	w.book(kept)
	w.promises()
}

// seen is a task's line.

// look does what the daemon does for a task as it stands.

// judge judges a task again; perhaps the command comes much later.

// later does a command now, or keeps it for later, when its facts may be old.

// old does a command whose facts were gathered a while ago.

// adopt takes a result file that another program has placed, or refuses it.

// start intends to run a queued task when a slot is free, and nothing holds it.

// busy is how many tasks have a slot.

// names lists the runs of the keeper in a fixed order.

// begin has the keeper begin an intended run.

// endOne ends a run, and tells the daemon, which may be told once more.

// heard tells the core how a run ended.

// speak ends a run whose agent asks something.

// oversee is the overseer of an agent, who has looked at its answer.

// recoverRun takes up a run whose daemon is gone.

// tend looks after a task that waits for its agent.

// program is a program that fetches a task, renews its lease, or answers.

// person is somebody at the command line.

// digestAsked is the digest of what an approver is asked about a task.

// release releases a task, or has its answer read again.

// place is another program that places a result file.

// show puts the result file of a task that is over, or its entry in the history.

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
	if !same(again, w.state) {
		w.fail("the state is not what its events make it:\n%s\nis\n%s", dump(w.state), dump(again))
	}
	w.state, w.stale, w.starts, w.waits = again, nil, nil, map[int64]wait{}
	for _, t := range w.open() {
		if t.State == task.Running {
			w.recoverRun(t)
		}
	}
}

// open lists the tasks that aren't over, the oldest first.

func (w *world) open() (all []*core.Task) {
	for _, id := range names {
		for _, t := range w.state.Revisions(id) {
			if t.State != task.Done || !t.Put || !t.Delivered {
				all = append(all, t)
			}
		}
	}
	slices.SortFunc(all, func(a, b *core.Task) int { return cmp.Compare(a.Seq, b.Seq) })
	return all
}

// same reports whether two states hold the same tasks.
func same(a, b *core.State) bool {
	for _, id := range names {
		if !reflect.DeepEqual(a.Revisions(id), b.Revisions(id)) {
			return false
		}
	}
	return true
}

func dump(s *core.State) string {
	var b strings.Builder
	for _, id := range names {
		for _, t := range s.Revisions(id) {
			fmt.Fprintf(&b, "%+v %v %+v %+v %+v %s\n", t.Task, t.Began, t.Start, t.Show, t.Run, t.Token)
		}
	}
	return b.String()
}
