package web

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// An agentCard is an agent with its record.
type agentCard struct {
	view.Agent
	Ended, OK int // in the last seven days, of the latest thousand
	Cost      string
	Command   string
	Own       bool // it is paused itself, not only with all agents
	Limited   string
}

// Rate is how many of its tasks ended well, in percent.
func (c agentCard) Rate() int { return c.OK * 100 / max(c.Ended, 1) }

// agentsData are the agents.
type agentsData struct {
	Cards     []agentCard
	AllPaused bool
	Runners   []runnerRow
}

// A runnerRow is a runner.
type runnerRow struct {
	client.Runner
	Seen   string // how long ago
	Agents string
	Tone   string
}

// runnerTones are the colours of statuses.
var runnerTones = map[client.RunnerStatus]string{client.RunnerReady: "ok", client.RunnerBusy: "run", client.RunnerUnavailable: "bad"}

// runnersOf reads the runners; none without a daemon.
func runnersOf(ctx context.Context, q question) (rows []runnerRow, err error) {
	all, err := q.reader.Client.Runners(ctx)
	for _, r := range all {
		rows = append(rows, runnerRow{
			Runner: r, Seen: view.RunnerSeen(r, q.now), Agents: view.RunnerAgents(r), Tone: cmp.Or(runnerTones[r.Status], "wait"),
		})
	}
	return rows, err
}

const week = 7 * 24 * time.Hour

// agents shows the agents.
func (s *server) agents(ctx context.Context, q question) (page, error) {
	views, err := s.opts.Agents(ctx)
	if err != nil {
		return page{}, err
	}
	paused, err := q.reader.Client.Paused(ctx)
	if err != nil {
		return page{}, err
	}
	days, err := daysOf(ctx, q.reader, q.now.Add(-week+24*time.Hour), q.now)
	if err != nil {
		return page{}, err
	}
	d := agentsData{AllPaused: slices.Contains(paused, "")}
	if d.Runners, err = runnersOf(ctx, q); err != nil {
		return page{}, err
	}
	for _, v := range views {
		card := agentCard{Agent: v, Command: cmp.Or(v.Service, view.CommandLine(v.Command)), Own: slices.Contains(paused, v.ID), Cost: costOfAgent(days, v.ID)}
		if v.LimitedUntil.After(q.now) {
			card.Limited = clock(v.LimitedUntil, q.now)
		}
		ended, err := q.reader.Tasks(ctx, client.Filter{Agent: v.ID, States: []task.State{task.Done}, Since: q.now.Add(-week), NewestFirst: true, Limit: 1000})
		if err != nil {
			return page{}, err
		}
		for _, t := range ended {
			card.Ended++
			if t.Status == envelope.OK || t.Status == envelope.Partial {
				card.OK++
			}
		}
		d.Cards = append(d.Cards, card)
	}
	return page{Name: "agents", Title: "Agents", Data: d}, nil
}

// A budgetDay has the accounts of a day.
type budgetDay struct {
	Day      string
	Accounts []client.Balance
}

// daysOf reads the accounts of the days between two times, in UTC.
func daysOf(ctx context.Context, r *reader.Reader, from, to time.Time) (days []budgetDay, err error) {
	for at := from.UTC(); task.Day(at) <= task.Day(to); at = at.Add(24 * time.Hour) {
		all, err := r.Balances(ctx, task.Day(at))
		if err != nil {
			return nil, err
		}
		days = append(days, budgetDay{task.Day(at), all})
	}
	return days, nil
}

// costOfAgent is what the runs of an agent spent in some days; "" for nothing.
func costOfAgent(days []budgetDay, agent string) string {
	var tokens, cents int64
	for _, day := range days {
		for _, b := range day.Accounts {
			if b.Owner == "agent:"+agent {
				tokens, cents = tokens+b.Tokens.Spent, cents+b.USDCents.Spent
			}
		}
	}
	if tokens+cents == 0 {
		return ""
	}
	return number(tokens) + " tokens, " + money(cents)
}

// budgetsData are the budgets of a day, and what the month cost.
type budgetsData struct {
	Day, Before, After string
	Requesters, Agents []balanceRow
	Month              string
	Chart              chart
	Total              string
	Unit               string // of the chart
	First, Last        string // days of the chart
	Most               string // of a day; "" for nothing
}

// A balanceRow is an account with a part of its limit.
type balanceRow struct {
	Name    string
	Amounts []amountRow
	Unknown int
}

// An amountRow is one unit of an account.
type amountRow struct {
	Unit                         string
	Limit, Spent, Reserved, Left string
	SpentPart, ReservedPart      float64 // in percent of the limit
	Limited                      bool
}

// budgets shows the budgets of a day.
func (s *server) budgets(ctx context.Context, q question) (page, error) {
	day, err := time.Parse(time.DateOnly, cmp.Or(q.URL.Query().Get("day"), task.Day(q.now)))
	if err != nil {
		return page{}, &client.Error{Kind: client.BadRequest, Message: "day: must be as 2026-03-09"}
	}
	first := time.Date(day.Year(), day.Month(), 1, 0, 0, 0, 0, time.UTC)
	days, err := daysOf(ctx, q.reader, first, first.AddDate(0, 1, -1))
	if err != nil {
		return page{}, err
	}
	d := budgetsData{Day: task.Day(day), Before: task.Day(day.AddDate(0, 0, -1)), After: task.Day(day.AddDate(0, 0, 1)), Month: day.Format("January 2006")}
	if d.After > task.Day(q.now) {
		d.After = ""
	}
	d.addMonth(days)
	for _, b := range days[day.Day()-1].Accounts {
		kind, name, _ := strings.Cut(b.Owner, ":")
		if row := balanceRowOf(name, b); kind == "agent" {
			d.Agents = append(d.Agents, row)
		} else {
			d.Requesters = append(d.Requesters, row)
		}
	}
	return page{Name: "budgets", Title: "Budgets", Data: d}, nil
}

// addMonth draws what each day of a month cost, in dollars, or in tokens when no price is known.
// Each run counts once, for its agent.
func (d *budgetsData) addMonth(days []budgetDay) {
	var tokens, cents []int64
	var sumTokens, sumCents int64
	for _, day := range days {
		var t, c, rt, rc int64
		for _, b := range day.Accounts {
			if strings.HasPrefix(b.Owner, "agent:") {
				t, c = t+b.Tokens.Spent, c+b.USDCents.Spent
			} else {
				rt, rc = rt+b.Tokens.Spent, rc+b.USDCents.Spent
			}
		}
		t, c = max(t, rt), max(c, rc)
		tokens, cents, sumTokens, sumCents = append(tokens, t), append(cents, c), sumTokens+t, sumCents+c
	}
	d.Total = number(sumTokens) + " tokens, " + money(sumCents)
	if sumCents > 0 {
		d.draw(days, cents, "US dollars", money)
	} else {
		d.draw(days, tokens, "tokens", number)
	}
}

// draw draws a value of each day.
func (d *budgetsData) draw(days []budgetDay, values []int64, unit string, words func(int64) string) {
	var bars []bar
	for i, v := range values {
		label := days[i].Day + ": " + words(v)
		if unit == "tokens" {
			label += " tokens"
		}
		bars = append(bars, bar{Label: label, Good: float64(v)})
	}
	d.Chart, d.Unit = newChart(bars, 620, 120), unit
	d.First, d.Last = days[0].Day, days[len(days)-1].Day
	if most := slices.Max(values); most > 0 {
		d.Most = words(most)
	}
}

func balanceRowOf(name string, b client.Balance) balanceRow {
	r := balanceRow{Name: name, Unknown: b.Unknown}
	for _, u := range []struct {
		unit  string
		write func(int64) string
		client.Amount
	}{{"tokens", number, b.Tokens}, {"dollars", money, b.USDCents}} {
		if u.Limit == nil && u.Spent+u.Reserved == 0 {
			continue
		}
		a := amountRow{Unit: u.unit, Limit: "no limit", Spent: u.write(u.Spent), Reserved: u.write(u.Reserved), Left: "-"}
		if u.Limit != nil {
			a.Limit, a.Limited = u.write(*u.Limit), true
			whole := float64(max(*u.Limit, 1))
			a.SpentPart = round(min(100, float64(u.Spent)/whole*100))
			a.ReservedPart = round(min(100-a.SpentPart, float64(u.Reserved)/whole*100))
		}
		if u.Left != nil {
			a.Left = u.write(*u.Left)
		}
		r.Amounts = append(r.Amounts, a)
	}
	return r
}

// eventsData are events, the newest first.
type eventsData struct {
	Kind, Task, Since string
	Groups            []string
	Events            []eventLine
	Why               string // no task was found
}

// mostEvents is how many events a page lists.
const mostEvents = 200

// events shows the latest events.
func (s *server) events(ctx context.Context, q question) (page, error) {
	v := q.URL.Query()
	d := eventsData{Kind: strings.TrimSpace(v.Get("kind")), Task: strings.TrimSpace(v.Get("task")), Since: v.Get("since"), Groups: groupsOfKinds()}
	query := reader.EventQuery{Tail: mostEvents}
	if period := periods[d.Since]; period > 0 {
		query.Since = q.now.Add(-period)
	}
	if d.Task != "" {
		id, err := q.reader.Find(ctx, d.Task)
		if code := exit.CodeOf(err); code == exit.NoTask || code == exit.Usage { // the form stays, as a person types
			d.Why = err.Error()
			return page{Name: "events", Title: "Events", Data: d}, nil
		}
		if err != nil {
			return page{}, err
		}
		query.Task = id
	}
	if d.Kind != "" {
		query.Tail = mostSearched
	}
	err := q.reader.Events(ctx, query, func(e client.Event) error {
		if d.Kind == "" || string(e.Kind) == d.Kind || strings.HasPrefix(string(e.Kind), d.Kind+".") {
			d.Events = append(d.Events, eventLine{e, view.EventWords(e)})
		}
		return nil
	})
	d.Events = d.Events[max(0, len(d.Events)-mostEvents):]
	slices.Reverse(d.Events)
	return page{Name: "events", Title: "Events", Data: d}, err
}

// mostSearched is how many events are searched for a kind.
const mostSearched = 5000

// groupsOfKinds are the first words of the kinds of events.
func groupsOfKinds() []string {
	groups := map[string]bool{}
	for _, kind := range task.EventKinds() {
		group, _, _ := strings.Cut(string(kind), ".")
		groups[group] = true
	}
	return slices.Sorted(maps.Keys(groups))
}
