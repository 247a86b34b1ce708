package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// runData is a chain of work as a tree, at a moment.
type runData struct {
	ID     string
	Graph  graph
	At     int // how many events have happened
	Most   int
	Moment time.Time // of the last of them
	Words  string    // what it was
	Parts  []part
}

// A part is a task of a chain of work.
type part struct {
	client.Part
	Depth   int
	Now     client.Task // as it was at the moment
	Cost    string
	Percent int
	Actions []action
}

// A graph is a tree as an SVG picture.
type graph struct {
	Width, Height int
	Nodes         []node
	Edges         []string // paths
}

// A node is a task in a graph.
type node struct {
	X, Y              int
	URL               string
	Name, Agent, Tone string
	State, Cost       string
}

// The measures of a graph.
const (
	nodeWidth, nodeHeight = 208, 64
	gapX, gapY            = 48, 16
)

// run shows the chain of work that a task is part of.
func (s *server) run(ctx context.Context, q question) (page, error) {
	id := idOf(q.Request)
	found, err := q.daemon.Trace(ctx, id)
	if err != nil {
		return page{}, err
	}
	d := runData{ID: found.ID, Most: len(found.Events)}
	d.At = d.Most
	if at, err := strconv.Atoi(q.URL.Query().Get("at")); err == nil {
		d.At = min(max(at, 0), d.Most)
	}
	past := found.Events[:d.At]
	if d.At > 0 {
		last := past[d.At-1]
		d.Moment, d.Words = last.Time, term.OneLine(string(last.Task))+": "+cmp.Or(last.Kind.Sentence(), string(last.Kind))
	}
	d.Parts = partsOf(found.Tasks, past, d.At == d.Most, s.opts.Approve)
	d.Graph = graphOf(d.Parts)
	return page{Name: "run", Title: "Run of " + found.ID, Data: d}, nil
}

// partsOf puts tasks in the order of a tree, each after the one above it, as they were after some
// events. At the end they are as they are.
func partsOf(tasks []client.Part, past []client.Event, end, approve bool) (all []part) {
	below := map[envelope.ID][]client.Part{}
	known := map[envelope.ID]bool{}
	for _, p := range tasks {
		known[p.Task.ID] = true
	}
	for _, p := range tasks {
		above := p.Parent
		if !known[above] || above == p.Task.ID {
			above = ""
		}
		below[above] = append(below[above], p)
	}
	seen := map[int64]bool{}
	var walk func(above envelope.ID, depth int)
	walk = func(above envelope.ID, depth int) {
		for _, p := range below[above] {
			if seen[p.Task.Seq] {
				continue
			}
			seen[p.Task.Seq] = true
			one := part{Part: p, Depth: depth, Now: p.Task}
			if !end {
				one.Now = stateAfter(p.Task, past)
			}
			one.Cost, one.Percent = costAfter(p.Task, past)
			if end {
				one.Actions = actionsOf(p.Task, client.Approval{}, approve)
			}
			all = append(all, one)
			walk(p.Task.ID, depth+1)
		}
	}
	walk("", 0)
	return all
}

// states are the states after events.
var states = map[task.Kind]task.State{
	task.KindTaskAccepted: task.Received, task.KindTaskHeld: task.Held, task.KindTaskQueued: task.Queued, task.KindTaskStarted: task.Running,
	task.KindTaskWaiting: task.Waiting, task.KindTaskFinished: task.Done, task.KindTaskCancelled: task.Done, task.KindTaskRejected: task.Done,
	task.KindTaskReleased: task.Queued, task.KindTaskResumed: task.Queued, task.KindTaskRetried: task.Queued, task.KindApprovalApproved: task.Queued,
}

// stateAfter is a task as it was after some events; without a state before it came.
func stateAfter(t client.Task, past []client.Event) client.Task {
	was := client.Task{ID: t.ID, ShortID: t.ShortID, Agent: t.Agent, Revision: t.Revision}
	for _, e := range past {
		if e.Task != t.ID || e.Revision != t.Revision || states[e.Kind] == "" {
			continue
		}
		if was.State = states[e.Kind]; was.State == task.Done {
			was.Status, was.Kind = t.Status, t.Kind
		}
	}
	return was
}

// costAfter is what a task had spent after some events, and the part of its budget in percent.
func costAfter(t client.Task, past []client.Event) (words string, percent int) {
	for _, e := range past {
		if e.Task != t.ID || e.Revision != t.Revision || e.Kind != task.KindBudgetSettled {
			continue
		}
		data := view.EventData(e.Data)
		spent, _ := data["spent"].(map[string]any)
		reserved, _ := data["reserved"].(map[string]any)
		words = amountWords(spent)
		for _, unit := range []string{"usd_cents", "tokens"} {
			used, _ := spent[unit].(float64)
			if limit, ok := reserved[unit].(float64); ok && limit > 0 {
				percent = max(percent, int(min(100, used/limit*100)))
			}
		}
	}
	return words, percent
}

// graphOf draws a tree, from left to right.
func graphOf(parts []part) graph {
	g := graph{}
	rows, at := 0, map[envelope.ID]node{}
	for i, p := range parts {
		if i > 0 && p.Depth <= parts[i-1].Depth {
			rows++
		}
		n := node{
			X: p.Depth * (nodeWidth + gapX), Y: rows * (nodeHeight + gapY), URL: taskURL(p.Task.ID),
			Name: term.Cut(term.OneLine(shortName(p.Task)), 24), Agent: term.Cut(term.OneLine(p.Task.Agent), 26),
			Tone: toneOf(p.Now), State: cmp.Or(view.StateOf(p.Now), "not yet"), Cost: p.Cost,
		}
		if p.Now.State == "" {
			n.Tone = "none"
		}
		if above, ok := at[p.Parent]; ok {
			x, y, toY := above.X+nodeWidth, above.Y+nodeHeight/2, n.Y+nodeHeight/2
			g.Edges = append(g.Edges, fmt.Sprintf("M%d %d C%d %d %d %d %d %d", x, y, x+gapX/2, y, n.X-gapX/2, toY, n.X, toY))
		}
		at[p.Task.ID] = n
		g.Nodes = append(g.Nodes, n)
		g.Width, g.Height = max(g.Width, n.X+nodeWidth), max(g.Height, n.Y+nodeHeight)
	}
	return g
}

// threadData is a conversation.
type threadData struct {
	ID       string
	Messages []message
	Tasks    []client.Part
	Answer   *row // the task that a reply goes to; nil for none
}

// A message is a message with what it does, in words.
type message struct {
	client.Message
	Words string
	Own   bool // of a person, not of an agent
	Raw   string
	First bool // of a day
}

// thread shows a conversation.
func (s *server) thread(ctx context.Context, q question) (page, error) {
	found, err := q.daemon.Thread(ctx, idOf(q.Request))
	if err != nil {
		return page{}, err
	}
	d := threadData{ID: found.ID, Tasks: found.Tasks}
	agents := map[string]bool{}
	for _, p := range found.Tasks {
		agents[p.Task.Agent] = true
	}
	timeline, day := view.Timeline{Dialogue: found}, ""
	for _, m := range found.Messages {
		words := timeline.MessageWords(m)
		if ends := m.Act == string(envelope.Completes) || m.Act == string(envelope.Fails); words == "" && ends && m.Text != "" {
			words = "answers " + m.To // a timeline has it as the end of the task
		}
		if words == "" {
			continue
		}
		one := message{m, words, !agents[m.From], pretty(m.Line), m.Time.Local().Format(time.DateOnly) != day}
		day = m.Time.Local().Format(time.DateOnly)
		d.Messages = append(d.Messages, one)
	}
	open := slices.DeleteFunc(slices.Clone(found.Tasks), func(p client.Part) bool { return p.Task.State == task.Done })
	slices.SortStableFunc(open, func(a, b client.Part) int { return strings.Compare(replyRank(a), replyRank(b)) })
	if len(open) > 0 {
		rows, err := rowsOf(ctx, q, []client.Task{open[0].Task}, nil, s.opts.Approve)
		if err != nil {
			return page{}, err
		}
		d.Answer = &rows[0]
	}
	return page{Name: "thread", Title: "Conversation " + found.ID, Data: d}, nil
}

// replyRank sorts tasks: those that wait for a reply first.
func replyRank(p client.Part) string {
	if task.EndedBy(p.Task.Held, task.Answer) {
		return "0"
	}
	return "1"
}
