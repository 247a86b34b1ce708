package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/agent"
	"mailboxd/internal/client"
	"mailboxd/internal/config"
	"mailboxd/internal/task"
	"mailboxd/internal/term"
)

func agentsCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "List the agents of the configuration, and what they have to do",
		Long: `Agents lists the agents of the configuration: how each is run, whether its command
is found, and how many of its tasks run, wait in the queue or its inbox, and are held now.`,
		Example: "  mailboxd agents\n  mailboxd agents --json | jq -r 'select(.problem).agent_id'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := g.load()
			if err != nil {
				return err
			}
			views, err := agentViews(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return printAgents(cmd.OutOrStdout(), views, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object per line")
	cmd.AddCommand(agentsTestCommand(g))
	return cmd
}

// agentView is an agent as --json shows it.
type agentView struct {
	ID          string   `json:"agent_id"`
	Profile     string   `json:"profile,omitempty"`
	Binding     string   `json:"binding"` // exec, worker or inbox
	Command     []string `json:"command"`
	Inbox       string   `json:"inbox,omitempty"`        // the file in which somebody finds its tasks, below the mailbox
	Found       string   `json:"found,omitempty"`        // the file that the command is
	Manifest    string   `json:"manifest,omitempty"`     // the file that says what it may
	Dialect     string   `json:"dialect"`                // in which it is asked, and answers
	Overseer    string   `json:"overseer,omitempty"`     // who approves of what it answers
	Delegates   []string `json:"delegates_to,omitempty"` // to whom its definition lets it hand work
	Concurrency int      `json:"concurrency"`
	Paused      bool     `json:"paused,omitzero"`
	Problem     string   `json:"problem,omitempty"` // why it could not be run now

	Running int `json:"running"`
	Queued  int `json:"queued"`
	Held    int `json:"held"`
	Waiting int `json:"waiting"` // in its inbox
}

func agentViews(ctx context.Context, cfg config.Config) ([]agentView, error) {
	var views []agentView
	for i, m := range cfg.ReadAgents() {
		views = append(views, viewOf(&cfg, cfg.Agents[i], m))
	}
	desk, err := deskOf(ctx, cfg)
	if errors.Is(err, errNoMailbox) {
		return views, nil // nobody has sent anything
	}
	if err != nil {
		return nil, err
	}
	defer desk.Close()
	return views, desk.occupy(ctx, views)
}

// spoken says how an agent is spoken with, and who looks at what it says.
func (v agentView) spoken() string {
	dialect := cmp.Or(v.Dialect, string(envelope.AINL))
	if v.Overseer == "" {
		return dialect
	}
	return dialect + ", " + v.Overseer + " approves"
}

// viewOf says how an agent of the configuration is run.
func viewOf(c *config.Config, e config.Entry, m config.Agent) agentView {
	v := agentView{ID: e.ID, Profile: e.Profile, Binding: "exec", Command: e.Exec.Command, Manifest: c.Resolve(e.Manifest), Concurrency: e.Concurrency}
	b, err := m.Binding, m.Problem()
	v.Dialect = string(b.Speaks())
	if d := b.Definition; d != nil {
		v.Overseer, v.Delegates = d.Overseer, d.AllowedAgents
	}
	command := b.Command
	if e.Profile != "" {
		v.Command = command
	}
	if b.Worker != nil {
		v.Binding, v.Command, command = "worker", e.Worker.Command, b.Worker.Command
		v.Concurrency = e.Worker.Count * e.Worker.InFlight
	}
	if err == nil {
		_, err = agent.New([]agent.Binding{b}, agent.Options{})
	}
	switch {
	case b.Inbox != nil:
		v.Binding, v.Inbox, v.Concurrency = "inbox", b.Inbox.File, 0
	case err == nil:
		v.Found, err = exec.LookPath(command[0])
	}
	if err != nil {
		v.Problem = err.Error()
	}
	return v
}

// occupy adds what the agents have to do.
func (d *desk) occupy(ctx context.Context, views []agentView) error {
	tasks, err := d.tasks(ctx, client.Filter{States: []task.State{task.Running, task.Queued, task.Held, task.Waiting}})
	if err != nil {
		return err
	}
	paused, err := d.paused(ctx)
	if err != nil {
		return err
	}
	counts := map[string]map[task.State]int{}
	for _, t := range tasks {
		if counts[t.Agent] == nil {
			counts[t.Agent] = map[task.State]int{}
		}
		counts[t.Agent][t.State]++
	}
	for i := range views {
		has := counts[views[i].ID]
		views[i].Running, views[i].Queued, views[i].Held = has[task.Running], has[task.Queued], has[task.Held]
		views[i].Waiting = has[task.Waiting]
		views[i].Paused = slices.Contains(paused, "") || slices.Contains(paused, views[i].ID)
	}
	return nil
}

func printAgents(w io.Writer, views []agentView, asJSON bool) error {
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
	return agentTable(views).Print(term.ScreenOf(w))
}

func agentTable(views []agentView) *term.Table {
	list := &term.Table{Head: []string{"AGENT", "BINDING", "RUNNING", "QUEUED", "HELD", "COMMAND", "MANIFEST"}, Weights: []int{2, 0, 0, 0, 0, 3, 1}}
	spoken := slices.ContainsFunc(views, func(v agentView) bool { return v.spoken() != string(envelope.AINL) })
	if spoken {
		list.Head, list.Weights = slices.Insert(list.Head, 2, "SPEAKS"), slices.Insert(list.Weights, 2, 0)
	}
	for _, v := range views {
		command, busy := term.Cell{Text: term.OneLine(v.Found)}, fmt.Sprintf("%d of %d", v.Running, v.Concurrency)
		if v.Inbox != "" {
			command, busy = term.Cell{Text: term.OneLine(v.Inbox)}, fmt.Sprintf("%d waiting", v.Waiting)
		}
		switch {
		case v.Problem != "":
			command = term.Cell{Text: term.OneLine(v.Problem), Paint: term.Red}
		case v.Paused:
			command = term.Cell{Text: "paused; " + command.Text, Paint: term.Yellow}
		}
		row := []term.Cell{
			{Text: term.OneLine(v.ID)}, {Text: v.Binding},
			{Text: busy},
			{Text: strconv.Itoa(v.Queued)}, {Text: strconv.Itoa(v.Held)},
			command, {Text: term.OneLine(v.Manifest)},
		}
		if spoken {
			row = slices.Insert(row, 2, term.Cell{Text: term.OneLine(v.spoken())})
		}
		list.Add(row...)
	}
	return list
}
