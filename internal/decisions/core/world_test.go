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
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// A world is everything outside the core, in memory: task files, the journal, runs, result
// files, people and the clock. It does one random step after another, loses volatile data in
// crashes, and checks the promises of the daemon.
type world struct {
	pick func(n int) int // chooses a number below n
	bug  *mutant         // a planted fault; nil: none

	mirror *mirror // has the same in a ledger; nil: none
	now    time.Time
	cfg    core.Config
	err    error
	log    []string // the steps, for people; only when a schedule is repeated for its text
	tell   bool

	// Durable.
	lines   []line
	journal []group
	runs    map[task.RunName]*run // of the keeper, which survives the daemon
	files   map[envelope.ID]resultFile
	booked  map[task.RunName]*task.Run // reservations and spending of runs
	rules   int                        // a change of the content to approve
	offset  int                        // number of lines in the journal

	// Volatile.
	state  *core.State
	stale  []core.Command // their facts are old
	starts []task.RunName // intended, and not begun
	waits  map[int64]wait // for a budget

	// Observed facts, for the checks.
	approved map[string]bool // approved content: a task and a digest
	shown    map[int64]int   // how often a revision ended
	requests map[int64]line
	results  map[int64][]byte
	tokens   map[int64]string        // the current lease
	leased   map[int64]time.Time     // and its end
	begun    map[int64]int           // how often a revision was begun
	allowed  map[int64]int           // the permitted number
	asked    map[*core.Answer]string // the digest that a person saw
	passed   map[int64]bool          // the answers that an overseer approves
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

// The agents of the world, by their behavior.

const (
	plain    = "plain"    // runs once
	remote   = "remote"   // runs on a runner, in scenarios only
	repeats  = "repeats"  // is idempotent, and has two more attempts
	asksPre  = "pre"      // starts after an approval
	asksPost = "post"     // shows its answer after an approval
	fetches  = "fetches"  // fetches its tasks
	windowed = "windowed" // waits for a change window
	speaks   = "speaks"   // asks a question before it answers
	overseen = "overseen" // has an overseer
	follows  = "follows"  // gets the outcome of t0, whose command it has too
)

var agents = []string{plain, repeats, asksPre, asksPre, asksPost, fetches, windowed, speaks, overseen, follows, spends, shares, routed}

const slots = 3

// names are the ids of all tasks.
var names = []envelope.ID{"t0", "t1", "t2", "t3"}

// A group has the events of one transaction.

type group struct {
	events []core.Event
	offset int
}

// A run is the keeper's record of an attempt.

type run struct {
	id    envelope.ID
	seq   int64
	ended bool
	ok    bool
	again bool // it asks for another attempt
	end   bool // its cancellation was requested
	said  int64
	final bool // it prints no more
}

// A resultFile is a file in results/.

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

// play does that many random steps, and then settles.

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
	case n < 59:
		w.meter()
	case n < 61:
		w.calls(w.any())
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

// changeRules changes the configuration, as an operator does: waiting tasks are judged again.

// any returns one of the tasks; nil if there is none.

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

// verdict returns the current verdict of policy on a request.

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

// next returns the Seq of the next task.

func (w *world) next() int64 { return int64(len(w.requests) + 1) }

// decide calls the core, perhaps with a planted fault.

func (w *world) decide(c core.Command) []core.Event {
	w.doing = c
	if w.bug != nil && w.bug.command != nil {
		w.bug.command(w, c)
	}
	events, err := core.Decide(w.state, c, w.cfg, w.now)
	w.answer = err
	if w.mirror != nil {
		w.mirror.note(c, events, err, w.now)
	}
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

// nameOf names the revision of an event.

func (w *world) nameOf(e core.Event) string {
	if t := w.state.Task(e.Task); t != nil {
		return fmt.Sprintf("%s.%d", t.ID, t.Revision)
	}
	return "new"
}

// brief describes a change in a few words.

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
		if w.mirror != nil {
			w.mirror.decided = nil
		}
		w.crash()
		return
	}
	for _, e := range events {
		w.check(e)
		w.checkVouched(events, e)
	}
	kept := events
	if w.bug != nil && w.bug.journal != nil {
		kept = w.bug.journal(events)
	}
	w.journal = append(w.journal, group{kept, offset})
	w.offset = offset
	core.Apply(w.state, events)
	if w.mirror != nil && w.err == nil {
		w.err = w.mirror.commit(w, events)
	}
	w.book(kept)
	w.promises()
}

// crash loses volatile data, and starts again from the journal.
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
			fmt.Fprintf(&b, "%+v %v %+v %+v %v %+v %s\n", t.Task, t.Began, t.Start, t.Show, openCalls(t), t.Run, t.Token)
		}
	}
	return b.String()
}
