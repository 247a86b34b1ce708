package view

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
)

// PrintStats prints the sums by agent and by day, with a bar for the ended tasks of each day.
func PrintStats(w io.Writer, s client.Stats, now time.Time) error {
	byAgent, byDay := sums(s, func(d client.DayStats) string { return d.Agent }), sums(s, func(d client.DayStats) string { return d.Day })
	waits := map[string]client.QueueStats{}
	for _, q := range s.Queues {
		waits[q.Agent] = q
		if _, known := byAgent.of[q.Agent]; !known {
			byAgent.add(q.Agent, client.DayStats{})
		}
	}
	if len(byAgent.names) == 0 {
		_, err := fmt.Fprintf(w, "no task ended since %s, and none is queued\n", s.Since.UTC().Format("2006-01-02 15:04 MST"))
		return err
	}
	agents := &term.Table{Head: []string{"AGENT", "ENDED", "SUCCESS", "COST", "TOKENS", "RUN TIME", "QUEUED", "OLDEST"}, Weights: []int{1, 0, 0, 0, 0, 0, 0, 0}}
	for _, name := range byAgent.names {
		d, q := byAgent.of[name], waits[name]
		oldest := "-"
		if q.Queued > 0 {
			oldest = now.Sub(q.Oldest).Round(time.Second).String()
		}
		agents.Add(cells(name, strconv.Itoa(ended(d)), success(d), cost(d), strconv.FormatInt(d.Tokens, 10),
			(time.Duration(d.Seconds * float64(time.Second))).Round(time.Second).String(), strconv.Itoa(q.Queued), oldest)...)
	}
	if err := agents.Print(term.ScreenOf(w)); err != nil || len(byDay.names) == 0 {
		return err
	}
	most := 0
	for _, d := range byDay.of {
		most = max(most, ended(d))
	}
	days := &term.Table{Head: []string{"DAY", "ENDED", "SUCCESS", "COST", "TASKS"}, Weights: []int{0, 0, 0, 0, 1}}
	for _, name := range byDay.names {
		d := byDay.of[name]
		days.Add(cells(name, strconv.Itoa(ended(d)), success(d), cost(d), bar(ended(d), most))...)
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return err
	}
	return days.Print(term.ScreenOf(w))
}

// A summary has sums by name, in the order of the first appearance.
type summary struct {
	names []string
	of    map[string]client.DayStats
}

func sums(s client.Stats, name func(client.DayStats) string) summary {
	all := summary{of: map[string]client.DayStats{}}
	for _, d := range s.Days {
		all.add(name(d), d)
	}
	return all
}

func (s *summary) add(name string, d client.DayStats) {
	sum, known := s.of[name]
	if !known {
		s.names = append(s.names, name)
	}
	sum.OK, sum.Partial, sum.Failed, sum.Cancelled, sum.Rejected = sum.OK+d.OK, sum.Partial+d.Partial, sum.Failed+d.Failed, sum.Cancelled+d.Cancelled, sum.Rejected+d.Rejected
	sum.Runs, sum.Seconds, sum.Tokens, sum.USDCents, sum.Unknown = sum.Runs+d.Runs, sum.Seconds+d.Seconds, sum.Tokens+d.Tokens, sum.USDCents+d.USDCents, sum.Unknown+d.Unknown
	s.of[name] = sum
}

func ended(d client.DayStats) int { return d.OK + d.Partial + d.Failed + d.Cancelled + d.Rejected }

// success is the share of tasks that ended with an answer. Cancelled tasks don't count.
func success(d client.DayStats) string {
	all := ended(d) - d.Cancelled
	if all == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %%", (d.OK+d.Partial)*100/all)
}

// cost is the known cost; a plus sign says that the cost of some runs is unknown.
func cost(d client.DayStats) string {
	switch text := fmt.Sprintf("$%d.%02d", d.USDCents/100, d.USDCents%100); {
	case d.Unknown == d.Runs:
		return "-"
	case d.Unknown > 0:
		return text + "+"
	default:
		return text
	}
}

// widestBar is the length of the longest bar of the chart.
const widestBar = 30

func bar(n, most int) string {
	if n == 0 || most == 0 {
		return ""
	}
	return strings.Repeat("▇", max(1, n*widestBar/most))
}

func cells(texts ...string) (row []term.Cell) {
	for _, text := range texts {
		row = append(row, term.Cell{Text: term.OneLine(text)})
	}
	return row
}
