package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
)

// An Agent is an agent as --json shows it.
type Agent struct {
	ID          string   `json:"agent_id"`
	Profile     string   `json:"profile,omitempty"`
	Permission  string   `json:"permission,omitempty"` // of the profile's program; absent: what its own settings allow
	Binding     string   `json:"binding"`              // exec, worker, inbox, http, a2a or mcp
	Command     []string `json:"command"`
	Inbox       string   `json:"inbox,omitempty"`        // the file in which somebody finds its tasks, below the mailbox
	Service     string   `json:"service,omitempty"`      // which is asked to do its tasks
	Found       string   `json:"found,omitempty"`        // the file that the command is
	Manifest    string   `json:"manifest,omitempty"`     // the file that says what it may
	Dialect     string   `json:"dialect"`                // in which it is asked, and answers
	Overseer    string   `json:"overseer,omitempty"`     // who approves of what it answers
	Delegates   []string `json:"delegates_to,omitempty"` // the agents that its definition lets it delegate to
	Concurrency int      `json:"concurrency"`
	Paused      bool     `json:"paused,omitzero"`
	Pending     string   `json:"pending,omitempty"` // until a reload: added, changed or removed, in the file
	Replica     string   `json:"-"`                 // the id of its entry, when that has replicas

	LimitedUntil time.Time `json:"limited_until,omitzero"` // its provider does not serve it before
	Problem      string    `json:"problem,omitempty"`      // why it could not be run now

	Running int `json:"running"`
	Queued  int `json:"queued"`
	Held    int `json:"held"`
	Waiting int `json:"waiting"` // in its inbox
}

// Speaks is the dialect of the agent, and its overseer.
func (v Agent) Speaks() string {
	dialect := cmp.Or(v.Dialect, string(envelope.AINL))
	if v.Overseer == "" {
		return dialect
	}
	return dialect + ", " + v.Overseer + " approves"
}

// Limit records that a task of the agent is held because its provider does not serve it.
func (v *Agent) Limit(t client.Task) {
	if slices.Contains(t.Held, task.ProviderLimit) && t.Until.After(v.LimitedUntil) {
		v.LimitedUntil = t.Until
	}
}

// PrintAgents prints agents as a table, or each as a line of JSON.
func PrintAgents(w io.Writer, views []Agent, asJSON bool) error {
	if asJSON {
		for _, v := range views {
			if err := term.PrintJSON(w, v); err != nil {
				return err
			}
		}
		return nil
	}
	if len(views) == 0 {
		_, err := fmt.Fprintln(w, "no agents are configured; mailboxd init writes a first one")
		return err
	}
	return AgentTable(views).Print(term.ScreenOf(w))
}

// AgentTable lists agents.
func AgentTable(views []Agent) *term.Table {
	list := &term.Table{Head: []string{"AGENT", "BINDING", "RUNNING", "QUEUED", "HELD", "COMMAND", "MANIFEST"}, Weights: []int{2, 0, 0, 0, 0, 3, 1}}
	spoken := slices.ContainsFunc(views, func(v Agent) bool { return v.Speaks() != string(envelope.AINL) })
	if spoken {
		list.Head, list.Weights = slices.Insert(list.Head, 2, "SPEAKS"), slices.Insert(list.Weights, 2, 0)
	}
	now := time.Now()
	for _, v := range views {
		command, busy := term.Cell{Text: term.OneLine(v.Found)}, fmt.Sprintf("%d of %d", v.Running, v.Concurrency)
		if v.Inbox != "" {
			command, busy = term.Cell{Text: term.OneLine(v.Inbox)}, fmt.Sprintf("%d waiting", v.Waiting)
		}
		if v.Service != "" {
			command = term.Cell{Text: term.OneLine(v.Service)}
		}
		switch {
		case v.Problem != "":
			command = term.Cell{Text: term.OneLine(v.Problem), Paint: term.Red}
		case v.Paused:
			command = term.Cell{Text: "paused; " + command.Text, Paint: term.Yellow}
		case v.LimitedUntil.After(now):
			command = term.Cell{Text: "its provider is tried again " + clock(v.LimitedUntil, now) + "; " + command.Text, Paint: term.Yellow}
		}
		if words := pendingWords[v.Pending]; words != "" && v.Problem == "" {
			command = term.Cell{Text: strings.TrimSuffix(words+"; "+command.Text, "; "), Paint: term.Yellow}
		}
		row := []term.Cell{
			{Text: term.OneLine(v.ID)}, {Text: v.Binding},
			{Text: busy},
			{Text: strconv.Itoa(v.Queued)}, {Text: strconv.Itoa(v.Held)},
			command, {Text: term.OneLine(v.Manifest)},
		}
		if spoken {
			row = slices.Insert(row, 2, term.Cell{Text: term.OneLine(v.Speaks())})
		}
		list.Add(row...)
	}
	return list
}
