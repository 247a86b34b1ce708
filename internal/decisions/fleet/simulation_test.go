package fleet

import (
	"container/heap"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var schedules = flag.Int("schedules", 300, "how many random schedules the simulation runs")

func TestNoTaskBeginsTwiceOrIsLost(t *testing.T) {
	var begun, ended, repeated, voided, lost, fenced int
	for seed := range *schedules {
		w := simulate(uint64(seed), sound)
		if len(w.faults) > 0 {
			t.Fatalf("schedule %d: %v", seed, w.faults)
		}
		begun, ended, repeated = begun+w.begun, ended+len(w.tasks), repeated+w.repeated
		voided, lost, fenced = voided+w.voided, lost+w.lost, fenced+w.fenced
	}
	t.Logf("%d schedules, %d tasks: begun %d times, voided %d, repeated %d, lost with their machine %d, fenced %d",
		*schedules, ended, begun, voided, repeated, lost, fenced)
	if voided == 0 || repeated == 0 || lost == 0 || fenced == 0 {
		t.Error("the schedules don't reach every case")
	}
}

func TestTheSimulationFindsEachMutant(t *testing.T) {
	const most = 1000
	for m, name := range map[mutant]string{
		requeueAtLease: "tasks start afresh at the end of each lease", lateAnswers: "late answers are taken without tombstones",
		beganAfterwards: "runs start before the journal says so", noSelfFencing: "runs go on after their lease",
		shortOwnerLease: "the owner's lease is shorter",
	} {
		found := 0
		for found < most && len(simulate(uint64(found), m).faults) == 0 {
			found++
		}
		if found == most {
			t.Errorf("%d schedules don't find the mutant: %s", most, name)
		}
		t.Logf("schedule %d finds: %s: %v", found, name, simulate(uint64(found), m).faults)
	}
}

// Times of the simulation: faults happen in its first part.
const (
	faultTime   = 5 * time.Minute
	simLease    = time.Minute
	simLost     = 20 * time.Minute
	endOfTime   = 2 * time.Hour
	taskCount   = 6
	runnerCount = 2
)

var epochTime = time.Unix(1_700_000_000, 0).UTC()

// event is something that happens at a time.
type event struct {
	at   time.Duration
	n    int
	then func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// world is one schedule: an owner with its ledger, machines, and the network between them.
type world struct {
	rand     *rand.Rand
	now      time.Duration
	queue    events
	count    int
	owner    *simOwner
	machines []*machine
	tasks    []*simTask
	broken   mutant
	faults   []string

	begun, repeated, voided, lost, fenced int
}

// simTask is a task in the ledger.
type simTask struct {
	number     int
	idempotent bool
	long       time.Duration
	attempt    int
	state      string // queued, running, done, lost
	began      int
	running    int // processes at this time
}

func simulate(seed uint64, broken mutant) *world {
	w := &world{rand: newRand(seed), broken: broken}
	for i := range taskCount {
		long := w.between(0, 40*time.Second)
		if w.chance(40) {
			long = w.between(time.Minute, 4*time.Minute)
		}
		w.tasks = append(w.tasks, &simTask{number: i + 1, idempotent: w.chance(40), long: long, state: "queued"})
	}
	w.owner = newSimOwner(w)
	for i := range runnerCount {
		w.machines = append(w.machines, newMachine(w, fmt.Sprintf("r%d", i)))
	}
	w.after(0, w.disturb)
	w.run(w.over)
	for _, t := range w.tasks {
		if len(w.faults) == 0 && t.state != "done" && t.state != "lost" {
			w.fault("task %d is lost: it is %s after %s", t.number, t.state, w.now)
		}
	}
	return w
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 42)) }

// run lets events happen until stop says so, the world ends, or a promise is broken.
func (w *world) run(stop func() bool) {
	for len(w.queue) > 0 && w.now < endOfTime && len(w.faults) == 0 && !stop() {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.then()
	}
}

// over reports whether the faults are past and all tasks have ended, for a while.
func (w *world) over() bool {
	if w.now < faultTime {
		return false
	}
	for _, t := range w.tasks {
		if t.state != "done" && t.state != "lost" {
			return false
		}
	}
	return w.now > faultTime+3*time.Minute
}

func (w *world) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

func (w *world) after(d time.Duration, then func()) {
	w.count++
	heap.Push(&w.queue, event{w.now + d, w.count, then})
}

func (w *world) chance(percent int) bool { return w.rand.IntN(100) < percent }

func (w *world) between(from, to time.Duration) time.Duration {
	return from + time.Duration(w.rand.Int64N(int64(to-from)))
}

func (w *world) troubled() bool { return w.now < faultTime }

// send carries a message, or loses, doubles or delays it.
func (w *world) send(m *machine, deliver func()) {
	copies := 1
	if w.troubled() {
		if w.chance(10) || w.now < m.cut {
			return
		}
		if w.chance(10) {
			copies = 2
		}
	}
	for range copies {
		delay := w.between(time.Millisecond, 50*time.Millisecond)
		if w.troubled() && w.chance(8) {
			delay = w.between(time.Millisecond, 120*time.Second)
		}
		w.after(delay, func() {
			if !w.troubled() || w.now >= m.cut {
				deliver()
			}
		})
	}
}

// disturb makes one fault, and later the next one.
func (w *world) disturb() {
	if !w.troubled() {
		return
	}
	m := w.machines[w.rand.IntN(len(w.machines))]
	switch roll := w.rand.IntN(100); {
	case roll < 35:
		m.cut = w.now + w.between(time.Second, 150*time.Second)
	case roll < 60:
		m.stop()
	case roll < 80:
		w.owner.stop()
	case roll < 90:
		m.reboot()
	case roll < 93:
		m.vanish()
	}
	w.after(w.between(0, 40*time.Second), w.disturb)
}
