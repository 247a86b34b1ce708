package web

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/access/web/agenttext"
	"mailboxd/internal/access/web/timeline"
	"mailboxd/internal/cli/compose"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
)

// taskData is everything about a task.
type taskData struct {
	view.Details
	Row       row
	Why       string
	Facts     []fact
	Asks      string // the description of the request
	Payload   string // JSON
	Asked     *client.Approval
	Question  []fact // the plan, or what else is asked
	Approvals []string
	Runs      []runLine // the newest first
	Timeline  []timeline.Phase
	Result    *resultData
	Unshown   *resultData // an answer that waits for a person
	Revisions []revision
	Events    []eventLine
	Changes   *changesData
	Routed    bool // an agent was chosen for it, or will be
}

// Split reports whether the page shows a difference side by side.
func (d taskData) Split() bool { return d.Changes != nil && d.Changes.Split }

// CanEdit reports whether the task can be changed.
func (d taskData) CanEdit() bool { return canEdit(d.TaskDetails) }

// A fact is a name with a value; with a link, if it has one.
type fact struct {
	Name, Value, Link string
}

// A runLine is a run in words.
type runLine struct {
	client.Run
	Words  string
	Cost   string
	Live   bool              // it goes on
	Output string            // of a run that goes on, as far as it is there
	Script *agenttext.Script // of the run that is shown
	Other  bool              // its transcript is shown on demand
}

// A resultData is an answer.
type resultData struct {
	envelope.Result
	Tone     string
	Cost     string
	Took     string
	Controls []fact // who enforced what
	Extra    string // further fields, as JSON
}

// Failure is the message of an error, unless the summary has it.
func (r resultData) Failure() string {
	if strings.Contains(r.Output.Summary, r.Error.Message) {
		return ""
	}
	return unescaped(r.Error.Message)
}

// unescaped has the ends of lines of an output that was escaped on one line.
func unescaped(words string) string { return strings.ReplaceAll(words, `\n`, "\n") }

// Words is the answer.
func (r resultData) Words() string {
	if r.Status == envelope.OK || r.Status == envelope.Partial {
		return strings.TrimPrefix(r.Output.Summary, "file://")
	}
	return unescaped(r.Output.Summary)
}

// Markdown is the answer as HTML; "" for one that is shown as it is, and for an error.
func (r resultData) Markdown() template.HTML {
	if r.Status != envelope.OK && r.Status != envelope.Partial || strings.HasPrefix(r.Output.Summary, "file://") {
		return ""
	}
	return agenttext.Markdown(r.Output.Summary)
}

// An eventLine is an event in words.
type eventLine struct {
	client.Event
	Words string
}

// task shows a task.
func (s *server) task(ctx context.Context, q question) (page, error) {
	id, err := envelope.ParseID(idOf(q.Request))
	if err != nil {
		return page{}, &client.Error{Kind: client.NoTask, Message: "there is no such task"}
	}
	found, err := q.reader.Details(ctx, id)
	if err != nil {
		return page{}, err
	}
	d := taskData{Details: view.Details{TaskDetails: found}}
	d.Session, d.Continue = reader.Session(found)
	rows, err := rowsOf(ctx, q, []client.Task{found.Task}, map[envelope.ID]client.TaskDetails{id: found}, s.opts.Approve)
	if err != nil {
		return page{}, err
	}
	d.Row, d.Why = rows[0], unescaped(d.Reason())
	if found.Task.State == task.Review {
		d.Row.Patch = found.PatchShown()
	}
	next, err := compose.NextRound(ctx, q.reader, found)
	if err != nil {
		return page{}, err
	}
	d.addRequest(q.now, next)
	d.addApprovals()
	d.addRuns(q)
	if d.Result, d.Unshown = resultOf(found.Result), resultOf(found.Unshown); d.Result != nil && found.Task.State == task.Done {
		d.Why = "" // the result says it
	}
	if d.Revisions, err = revisionsOf(ctx, q.daemon, found); err != nil {
		return page{}, err
	}
	for _, e := range slices.Backward(found.Events) {
		d.Events = append(d.Events, eventLine{e, unescaped(view.EventWords(e))})
	}
	d.Changes = changesOf(found, layoutOf(q.Request))
	d.Routed = slices.Contains(found.Task.Held, task.Routing) || slices.ContainsFunc(found.Events, isDecision)
	return page{Name: "task", Title: string(id), Data: d}, nil
}

// addRequest adds what was asked for, and by whom; and the task that does a denied one once more.
func (d *taskData) addRequest(now time.Time, next envelope.ID) {
	t := d.Details.Task
	add := func(name, value, link string) {
		if value != "" {
			d.Facts = append(d.Facts, fact{name, value, link})
		}
	}
	add("Agent", agentName(t.Agent), "/tasks?agent="+url.QueryEscape(t.Agent))
	add("Requester", t.Requester, "/tasks?requester="+url.QueryEscape(t.Requester))
	add("Type", t.Type, "")
	add("Received", clock(t.Received, now), "")
	add("Finished", clock(t.Finished, now), "")
	if !t.Deadline.IsZero() {
		add("Deadline", clock(t.Deadline, now), "")
	}
	if t.Priority != 0 {
		add("Priority", fmt.Sprint(t.Priority), "")
	}
	if t.Revision > 1 {
		add("Revision", fmt.Sprint(t.Revision), "")
	}
	add("Cost", spentOf(d.TaskDetails), "")
	if d.Parent != "" {
		add("Is for", string(d.Parent), taskURL(d.Parent))
	}
	if denied, person := d.RoundOf(); denied != "" {
		add("Round of", string(denied)+", which "+person+" denied", taskURL(denied))
	}
	if next != "" {
		add("Done once more", string(next), taskURL(next))
	}
	for _, child := range d.Children {
		add("Asked for", string(child), taskURL(child))
	}
	for _, key := range slices.Sorted(maps.Keys(d.Labels)) {
		add("Label", key+"="+d.Labels[key], "")
	}
	add("Dialect", t.Dialect, "")
	add("File", t.File, "")
	if asked, ok := d.Details.Asked(); ok {
		d.Asks, d.Payload = asked.Description, pretty(asked.Payload)
		add("Works in", asked.Workdir(), "")
		add("Budget", limits(asked.Budget), "")
	}
}

func limits(b envelope.Budget) string {
	var words []string
	if b.Tokens != nil {
		words = append(words, number(*b.Tokens)+" tokens")
	}
	if b.USDCents != nil {
		words = append(words, money(*b.USDCents))
	}
	return strings.Join(words, ", ")
}

// pretty indents JSON; "" for none.
func pretty(v jsontext.Value) string {
	if len(v) == 0 {
		return ""
	}
	copied := slices.Clone(v)
	if copied.Indent(jsontext.WithIndent("  ")) != nil {
		return string(v)
	}
	return string(copied)
}

// addRuns adds the runs with the transcript of one: the last, or another that is asked for.
func (d *taskData) addRuns(q question) {
	all := d.TaskDetails.Runs
	shown, err := strconv.Atoi(q.URL.Query().Get("attempt"))
	if err != nil || !slices.ContainsFunc(all, func(r client.Run) bool { return r.Attempt == shown }) {
		shown = 0
		if len(all) > 0 {
			shown = all[len(all)-1].Attempt
		}
	}
	var read *agenttext.Script
	for i, r := range slices.Backward(all) {
		_, words, _ := strings.Cut(d.Outcome(r, q.now), "  ") // without its number
		one := runLine{Run: r, Words: words, Cost: costOf(r.Tokens, r.USDCents)}
		switch one.Live = i == len(all)-1 && d.Details.Task.State == task.Running; {
		case one.Live:
			one.Output = agenttext.Output(r.Dir)
		case r.Attempt != shown:
			one.Other = r.Dir != ""
		default:
			one.Script = agenttext.ReadScript(r.Dir, r.Attempt, strings.TrimSpace(q.URL.Query().Get("find")))
			if read = one.Script; read != nil {
				read.Open = d.Details.Task.State != task.Done
			}
		}
		d.Runs = append(d.Runs, one)
	}
	attempt, tools := 0, 0
	if read != nil {
		attempt, tools = read.Attempt, read.Tools
	}
	d.Timeline = timeline.Of(d.TaskDetails, attempt, tools, q.now)
}

// costOf writes a cost; "" for an unknown one.
func costOf(tokens, cents *int64) string {
	switch {
	case tokens != nil && cents != nil:
		return number(*tokens) + " tokens, " + money(*cents)
	case tokens != nil:
		return number(*tokens) + " tokens"
	case cents != nil:
		return money(*cents)
	}
	return ""
}

// spentOf says what the runs of a task have spent, and what is reserved for the one that goes on.
func spentOf(f client.TaskDetails) string {
	var tokens, cents int64
	known := false
	for _, r := range f.Runs {
		if r.Tokens != nil {
			tokens, known = tokens+*r.Tokens, true
		}
		if r.USDCents != nil {
			cents, known = cents+*r.USDCents, true
		}
	}
	if n := len(f.Runs); f.Task.State == task.Running && n > 0 && f.Runs[n-1].Tokens == nil {
		if live := agent.Spent(f.Runs[n-1].Dir); live != nil {
			tokens, cents, known = tokens+live.Tokens, cents+live.USDCents, true
		}
	}
	words := ""
	if known {
		words = number(tokens) + " tokens, " + money(cents)
	}
	for _, e := range slices.Backward(f.Events) {
		if e.Kind == task.KindBudgetSettled {
			break
		}
		if e.Kind == task.KindBudgetReserved {
			reserved, _ := view.EventData(e.Data)["reserved"].(map[string]any)
			if limit := amountWords(reserved); limit != "" {
				return cmp.Or(words, "nothing yet") + " of " + limit
			}
		}
	}
	return words
}

// amountWords writes the numbers of a reservation.
func amountWords(data map[string]any) string {
	tokens, hasTokens := data["tokens"].(float64)
	cents, hasCents := data["usd_cents"].(float64)
	switch {
	case hasTokens && hasCents && tokens > 0 && cents > 0:
		return number(int64(tokens)) + " tokens, " + money(int64(cents))
	case hasTokens && tokens > 0:
		return number(int64(tokens)) + " tokens"
	case hasCents && cents > 0:
		return money(int64(cents))
	}
	return ""
}

// resultOf reads an answer; nil for none.
func resultOf(raw jsontext.Value) *resultData {
	if len(raw) == 0 {
		return nil
	}
	r, findings := envelope.DecodeResult(raw)
	if findings.Refused() {
		return &resultData{Extra: pretty(raw), Tone: "bad"}
	}
	d := &resultData{Result: r, Tone: toneOf(client.Task{State: task.Done, Status: r.Status}), Took: r.Time.Wall.String(), Extra: pretty(r.Output.Extra)}
	if r.Cost != nil && *r.Cost != (envelope.Cost{}) {
		d.Cost = number(r.Cost.Tokens) + " tokens"
		if !r.Cost.Unpriced {
			d.Cost += ", " + money(r.Cost.USDCents)
		}
	}
	for _, control := range slices.Sorted(maps.Keys(r.Output.Enforcement)) {
		d.Controls = append(d.Controls, fact{Name: string(control), Value: string(r.Output.Enforcement[control])})
	}
	return d
}
