package web

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/decisions/route"
	"mailboxd/internal/decisions/task"
)

// A choice is a decision about the agent of a task.
type choice struct {
	route.Record
	Seq    int64 // of its event; 0: nothing was decided yet, and this would be
	Task   envelope.ID
	Agents []choiceAgent
	Needs  []fact
	Again  string // why the recorded inputs give another decision; "": they give the same
}

// A choiceAgent is an agent as a decision saw it.
type choiceAgent struct {
	route.Candidate
	Tone   string
	State  string // chosen, candidate, or the filter that excluded it
	Score  string
	Part   float64 // of the highest score, in percent
	Load   string
	Record string // how its latest runs ended
	Why    string // it was excluded
}

// Title says in a few words what was decided.
func (c choice) Title() string {
	switch {
	case c.Selected != "":
		return c.Selected
	case c.Capable:
		return "no agent is free"
	}
	return "no agent can do it"
}

// Tone is the colour of the decision.
func (c choice) Tone() string {
	switch {
	case c.Selected != "":
		return "ok"
	case c.Capable:
		return "wait"
	}
	return "bad"
}

// isDecision reports whether an event is about the choice of an agent.
func isDecision(e client.Event) bool {
	return e.Kind == task.KindRoutingDecided || e.Kind == task.KindRoutingFailed
}

// choiceOf reads the event of a decision.
func choiceOf(e client.Event) (choice, error) {
	r, err := route.ReadRecord(e.Data)
	if err != nil {
		return choice{}, fmt.Errorf("read event %d: %w", e.Seq, err)
	}
	c := choice{Record: r, Seq: e.Seq, Task: e.Task}
	c.Reason = required.ReplaceAllString(c.Reason, "has what the task needs ($1)")
	c.addAgents()
	c.addNeeds()
	if _, err := r.Again(); err != nil {
		c.Again = err.Error()
	}
	return c, nil
}

// required is what a reason says of the labels that a task requires.
var required = regexp.MustCompile(`matched requires\[([^\]]*)\]`)

// addAgents adds the agents: the chosen one, the other candidates by their scores, and the
// excluded ones.
func (c *choice) addAgents() {
	best := 0.0
	for _, score := range c.Scores {
		best = max(best, score)
	}
	for _, id := range c.Candidates {
		a := newChoiceAgent(id, c.Inputs[id])
		if score, scored := c.Scores[id]; scored {
			a.Score = strconv.FormatFloat(score, 'f', 3, 64)
			a.Part = round(score / max(best, 1e-9) * 100)
		}
		if a.State = "candidate"; id == c.Selected {
			a.State, a.Tone = "chosen", "ok"
		}
		c.Agents = append(c.Agents, a)
	}
	slices.SortStableFunc(c.Agents, func(a, b choiceAgent) int {
		switch c.Selected {
		case a.ID:
			return -1
		case b.ID:
			return 1
		}
		return cmp.Compare(c.Scores[b.ID], c.Scores[a.ID])
	})
	c.addExcluded()
}

// addExcluded adds the agents that were excluded: those that are capable first.
func (c *choice) addExcluded() {
	var capable, others []choiceAgent
	_, dynamic := route.Filters()
	for _, e := range c.Excluded {
		a := newChoiceAgent(e.Agent, c.Inputs[e.Agent])
		if a.State, a.Why = e.Filter, e.Why; slices.Contains(dynamic, e.Filter) {
			a.Tone = "wait"
			capable = append(capable, a)
		} else {
			others = append(others, a)
		}
	}
	c.Agents = slices.Concat(c.Agents, capable, others)
}

func newChoiceAgent(id string, c route.Candidate) choiceAgent {
	a := choiceAgent{Candidate: c, Tone: "idle", Load: fmt.Sprintf("%d running", c.Running), Record: "no runs yet"}
	a.ID = id
	switch {
	case c.Slots == 1:
		a.Load = fmt.Sprintf("%d for 1 slot", c.Running)
	case c.Slots > 1:
		a.Load = fmt.Sprintf("%d for %d slots", c.Running, c.Slots)
	}
	if c.Settled > 0 {
		a.Record = fmt.Sprintf("%d of %d well", c.Good, c.Settled)
	}
	return a
}

// addNeeds adds what the task needs of its agent.
func (c *choice) addNeeds() {
	add := func(name, value string) {
		if value != "" {
			c.Needs = append(c.Needs, fact{Name: name, Value: value})
		}
	}
	add("Names", c.Need.Agent)
	add("Of a group", strings.Join(c.Need.Among, ", "))
	add("Needs", strings.Join(c.Need.Requires, ", "))
	add("Prefers", strings.Join(c.Need.Prefers, ", "))
	add("Network", string(c.Need.Network))
	if c.Need.Sandbox {
		add("Sandbox", "required")
	}
	if c.Need.Prod {
		add("Trust", "prod")
	}
	add("Failed there", strings.Join(c.Need.Exclude, ", "))
}

// mostChoices is how many decisions the list shows.
const mostChoices = 100

// choices has the latest decisions, the oldest first. Its zero value has read no event.
type choices struct {
	mu     sync.Mutex // guards the rest
	last   int64      // the last event that was read
	latest []client.Event
}

// read reads new events, and returns the latest decisions. The first time it searches a limited
// number of events.
func (c *choices) read(ctx context.Context, r *reader.Reader) ([]client.Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	query := reader.EventQuery{After: c.last}
	if c.last == 0 {
		query.Tail = mostSearched
	}
	err := r.Events(ctx, query, func(e client.Event) error {
		if c.last = e.Seq; isDecision(e) {
			c.latest = append(c.latest, e)
		}
		return nil
	})
	c.latest = slices.Clone(c.latest[max(0, len(c.latest)-mostChoices):])
	return c.latest, err
}

// routing lists the latest decisions about agents, the newest first.
func (s *server) routing(ctx context.Context, q question) (page, error) {
	events, err := s.choices.read(ctx, q.reader)
	if err != nil {
		return page{}, err
	}
	var all []choice
	for _, e := range slices.Backward(events) {
		c, err := choiceOf(e)
		if err != nil {
			return page{}, err
		}
		all = append(all, c)
	}
	return page{Name: "routing", Title: "Routing", Data: all}, nil
}

// routeData are the decisions about one task, the newest first.
type routeData struct {
	Task    client.Task
	Choices []choice
}

// route shows the decisions about the agent of a task.
func (s *server) route(ctx context.Context, q question) (page, error) {
	id, err := envelope.ParseID(idOf(q.Request))
	if err != nil {
		return page{}, &client.Error{Kind: client.NoTask, Message: "there is no such task"}
	}
	found, err := q.reader.Latest(ctx, id)
	if err != nil {
		return page{}, err
	}
	d := routeData{Task: found}
	if slices.Contains(found.Held, task.Routing) { // what would be decided now
		if data, err := q.daemon.RouteOf(ctx, id); err == nil {
			c, err := choiceOf(client.Event{Task: id, Data: data})
			if err != nil {
				return page{}, err
			}
			d.Choices = append(d.Choices, c)
		}
	}
	var recorded []choice
	err = q.reader.Events(ctx, reader.EventQuery{Task: id}, func(e client.Event) error {
		if !isDecision(e) {
			return nil
		}
		c, err := choiceOf(e)
		recorded = append(recorded, c)
		return err
	})
	slices.Reverse(recorded)
	d.Choices = append(d.Choices, recorded...)
	return page{Name: "route", Title: "Choice for " + string(id), Data: d}, err
}
