package main

import (
	"context"
	"errors"
	"os/exec"
	"slices"

	"github.com/spf13/cobra"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/running/agent"
)

func agentsCommand(g *globals) *cobra.Command {
	asJSON, cards := false, false
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "List the agents, how they run, and how many tasks they have",
		Long: `List the agents of the configuration. Each row shows how the agent runs, whether
its command exists, and how many of its tasks are running, queued and held. With
--cards, each row shows what the agent can do and whether it can do it now; this needs
the daemon. What agents announced about themselves counts until the daemon restarts.`,
		Example: "  mailboxd agents\n  mailboxd agents --json | jq -r 'select(.problem).agent_id'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cards {
				return withDaemon(g, func(cmd *cobra.Command, _ []string, _ *reader.Reader, daemon *client.Client) error {
					all, err := daemon.Cards(cmd.Context())
					if err != nil {
						return err
					}
					return view.PrintCards(cmd.OutOrStdout(), all, asJSON)
				})(cmd, args)
			}
			cfg, err := g.partial(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			views, err := agentViews(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			return view.PrintAgents(cmd.OutOrStdout(), views, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	cmd.Flags().BoolVar(&cards, "cards", false, "show what the agents can do")
	cmd.AddCommand(agentsTestCommand(g))
	return cmd
}

func agentViews(ctx context.Context, cfg config.Config) ([]view.Agent, error) {
	var views []view.Agent
	for i, m := range cfg.ReadAgents() {
		views = append(views, viewOf(&cfg, cfg.Agents[i], m))
	}
	r, err := locationOf(cfg).Open(ctx)
	if errors.Is(err, reader.ErrNoMailbox) {
		return views, nil // there are no tasks
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if diff, err := r.Client.ConfigDiff(ctx); err == nil { // without a daemon, and before some version, nobody can say
		views = view.MarkPending(views, diff.Changes)
	}
	return views, countTasks(ctx, r, views)
}

// viewOf describes how an agent is run.
func viewOf(c *config.Config, e config.Entry, m config.Agent) view.Agent {
	v := view.Agent{ID: e.ID, Profile: e.Profile, Permission: e.Permission, Binding: "exec", Command: e.Exec.Command, Manifest: c.Resolve(e.Manifest), Concurrency: e.Concurrency, Replica: m.Replica()}
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
	case b.Remote != nil:
		v.Binding = "remote"
	case b.Service != nil:
		v.Binding, v.Service = b.Service.Section(), b.Service.URL
		if b.Service.Server != "" {
			v.Service = b.Service.Server + "/" + b.Service.Tool
		}
	case err == nil:
		v.Found, err = exec.LookPath(command[0])
	}
	if err != nil {
		v.Problem = err.Error()
	}
	return v
}

// countTasks counts the tasks of the agents.
func countTasks(ctx context.Context, r *reader.Reader, views []view.Agent) error {
	tasks, err := r.Tasks(ctx, client.Filter{States: []task.State{task.Running, task.Queued, task.Held, task.Waiting}})
	if err != nil {
		return err
	}
	paused, err := r.Client.Paused(ctx)
	if err != nil {
		return err
	}
	counts := map[string]map[task.State]int{}
	for _, t := range tasks {
		if counts[t.Agent] == nil {
			counts[t.Agent] = map[task.State]int{}
		}
		counts[t.Agent][t.State]++
		if i := slices.IndexFunc(views, func(v view.Agent) bool { return v.ID == t.Agent }); i >= 0 {
			views[i].Limit(t)
		}
	}
	for i := range views {
		has := counts[views[i].ID]
		views[i].Running, views[i].Queued, views[i].Held = has[task.Running], has[task.Queued], has[task.Held]
		views[i].Waiting = has[task.Waiting]
		views[i].Paused = slices.Contains(paused, "") || slices.Contains(paused, views[i].ID)
	}
	return nil
}
