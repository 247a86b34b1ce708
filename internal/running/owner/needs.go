package owner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
)

// needs are what a run needs of its runner beside the agent's capabilities. They can be compared.
type needs struct {
	agent       string
	sensitivity envelope.Sensitivity
	approved    string // the digests of the bindings that an approval covers, each between spaces; "": no approval is needed
	objects     bool   // its job has a commit or artifacts, which the hub keeps for the runner
}

// needsOf returns the needs of a job.
func (f *files) needsOf(j task.Job) (needs, error) {
	n := needs{agent: j.Task.Agent, sensitivity: j.Task.Sensitivity, objects: f.inWorktree(j) || f.hasInputs(j)}
	if j.Digest == "" {
		return n, nil
	}
	var plan struct {
		Bindings []string `json:"bindings"`
	}
	err := json.Unmarshal(j.Plan, &plan)
	n.approved = " " + strings.Join(plan.Bindings, " ") + " "
	return n, err
}

// refusedBy says why a run can't go to a runner with an agent; "" if it can.
func (n needs) refusedBy(k fleet.Known, a fleet.Agent) string {
	if n.approved != "" && !strings.Contains(n.approved, " "+a.Digest+" ") {
		return fmt.Sprintf("what runner %s would run was not approved", k.Runner)
	}
	if most, ok := envelope.ParseSensitivity(a.MaxSensitivity); !ok || n.sensitivity > most {
		return fmt.Sprintf("the task is %s, and runner %s takes at most %s", n.sensitivity, k.Runner, a.MaxSensitivity)
	}
	return ""
}

// fits reports whether a run may go to a runner with an agent. If only the run or the hub is in the way, why says so.
func (f *files) fits(n needs, k fleet.Known, a fleet.Agent) (why string, ok bool) {
	if !f.Suits(n.agent, k.Runner, k.Offers.Capabilities) {
		return "", false
	}
	if fault := f.hubFaults.of(k.Runner, time.Now()); n.objects && fault != "" {
		return fmt.Sprintf("the hub keeps no files for runner %s: %s", k.Runner, fault), false
	}
	why = n.refusedBy(k, a)
	return why, why == ""
}

// roomOf returns for how many runs with some needs a claim of a runner has room.
func (f *files) roomOf(k fleet.Known, m fleet.Claim) func(needs) int {
	return func(n needs) int {
		a, offered := k.Agent(n.agent)
		if !offered {
			return 0
		}
		if _, ok := f.fits(n, k, a); !ok {
			return 0
		}
		return min(m.By[n.agent], m.Free)
	}
}

// unfit are the tasks whose runs no runner with room might have, by their needs, and whether each is held: before
// that, the engine can't be told that a runner has room.
type unfit map[needs]map[int64]bool

// add adds a task that will be held.
func (u unfit) add(n needs, seq int64) {
	u.remove(seq)
	if u[n] == nil {
		u[n] = map[int64]bool{}
	}
	u[n][seq] = false
}

func (u unfit) remove(seq int64) {
	for n, tasks := range u {
		if delete(tasks, seq); len(tasks) == 0 {
			delete(u, n)
		}
	}
}

// hold notes that a task is held, and returns its needs. An earlier daemon may have added it.
func (u unfit) hold(seq int64) (n needs, known bool) {
	for n, tasks := range u {
		if _, known := tasks[seq]; known {
			tasks[seq] = true
			return n, true
		}
	}
	return n, false
}

// unbound removes the tasks whose approval may be for what no runner has any more, after a runner announced something else.
// It returns those that are held: they are judged again, so that they are asked about. hold says so of the others.
func (u unfit) unbound(before, now fleet.Announcement) (held []int64) {
	if slices.Equal(before.Agents, now.Agents) && slices.Equal(before.Capabilities, now.Capabilities) {
		return nil
	}
	for n, tasks := range u {
		if n.approved == "" {
			continue
		}
		for seq, is := range tasks {
			if is {
				held = append(held, seq)
			}
		}
		delete(u, n)
	}
	slices.Sort(held)
	return held
}

// take removes and returns as many held tasks as there is room for, the oldest first.
func (u unfit) take(room func(needs) int) (taken []int64) {
	for n, tasks := range u {
		most := room(n)
		for _, seq := range slices.Sorted(maps.Keys(tasks)) {
			if most > 0 && tasks[seq] {
				most--
				taken = append(taken, seq)
			}
		}
	}
	for _, seq := range taken {
		u.remove(seq)
	}
	return taken
}
