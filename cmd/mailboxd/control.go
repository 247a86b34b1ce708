package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/dispatch/store"
	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

// A taskVerb is a command that changes tasks.
type taskVerb struct {
	name, short, long, example string

	do func(*client.Client, context.Context, envelope.ID, client.ControlOptions) (client.Task, error)
}

func taskVerbs(g *globals) []*cobra.Command {
	tree := &treeCancel{}
	return []*cobra.Command{
		tree.add(taskVerb{
			"cancel", "End a task and its run",
			"End a task with the status cancelled, and end all processes of its run. Cancel\nreturns when no process is left. After --timeout it returns with exit code 5, and\nthe daemon goes on ending the run.\n\n" +
				"Tasks that its runs asked for go on, unless they end with it by themselves.\n" +
				"--tree cancels them too, and all tasks below them. Without a flag, cancel asks at\n" +
				"a terminal; elsewhere it lists the tasks that stay open.\n\n" +
				"A run on a runner that can't be reached may go on there. --abandon ends its task\n" +
				"now, as lost; an answer that comes later is kept for review and changes nothing.",
			"  mailboxd cancel nightly-report --reason 'wrong input'\n  mailboxd cancel nightly-report --tree", tree.cancel,
		}.command(g, 30*time.Second)),
		taskVerb{
			"hold", "Hold a task until release",
			"Hold a task, and later revisions of it, until mailboxd release. Approvals and\nother waits go on meanwhile. A running task is not stopped.",
			"  mailboxd hold nightly-report --reason 'not tonight'", (*client.Client).Hold,
		}.command(g, 0),
		taskVerb{
			"release", "Release a held task",
			"Release a task that is held by mailboxd hold, for a login, for a provider's limit,\nor because it may have run before the ledger was lost. For a finished task, try its\nfailed callback again; the exit code is 1 if it fails again. Release does not\napprove a task: see mailboxd approve.",
			"  mailboxd release nightly-report", (*client.Client).Release,
		}.command(g, 0),
		taskVerb{
			"retry", "Run a failed, cancelled or rejected task again",
			"Run the same request again as the next revision of the task. The daemon checks it\nagainst the present configuration. The old result moves to the history.",
			"  mailboxd retry nightly-report", (*client.Client).Retry,
		}.command(g, 0),
	}
}

// command makes the command. A patience of 0 means no flag --timeout.
func (v taskVerb) command(g *globals, patience time.Duration) *cobra.Command {
	var request client.ControlOptions
	which, asJSON := &chosen{}, false
	cmd := &cobra.Command{
		Use: v.name + " ID...", Short: v.short, Long: v.long, Example: v.example,
		Args: cobra.MinimumNArgs(1),
		RunE: withDaemon(g, func(cmd *cobra.Command, args []string, r *reader.Reader, daemon *client.Client) error {
			request.Timeout = formatTimeout(patience)
			return forEach(cmd, args, func(arg string) error {
				id, err := which.find(cmd.Context(), r, arg)
				if err != nil {
					return err
				}
				task, err := v.do(daemon, cmd.Context(), id, request)
				if err == nil && v.name == "release" && !asJSON {
					err = callbackFailure(cmd.Context(), r, id)
				}
				if err != nil {
					return err
				}
				return printChanged(cmd.OutOrStdout(), task, asJSON)
			})
		}),
	}
	cmd.Flags().StringVar(&request.Reason, "reason", "", "the reason, for the record")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each task as one JSON object")
	which.add(cmd)
	if patience > 0 {
		cmd.Flags().DurationVar(&patience, "timeout", patience, "how long to wait; 0: no limit")
	}
	return cmd
}

// callbackFailure returns an error when the callback of a released task failed again.
func callbackFailure(ctx context.Context, r *reader.Reader, id envelope.ID) error {
	found, err := r.Details(ctx, id)
	if err != nil {
		return err
	}
	if why := (&view.Details{TaskDetails: found}).FailedAgain(); why != "" {
		return fmt.Errorf("the callback of %s failed again: %s", term.OneLine(string(id)), why)
	}
	return nil
}

// formatTimeout formats the timeout of a request.
func formatTimeout(timeout time.Duration) string {
	if timeout <= 0 {
		return ""
	}
	return timeout.String()
}

func printChanged(w io.Writer, task client.Task, asJSON bool) error {
	if asJSON {
		return term.PrintJSON(w, task)
	}
	_, err := fmt.Fprintf(w, "%s  %s\n", term.Escape(string(task.ID)), view.StateWithReasons(task))
	return err
}

// An agentVerb is a command that changes one agent or all.
type agentVerb struct {
	name, short, long, example string

	do func(*client.Client, context.Context, client.AgentOptions) (client.Pauses, error)
}

func agentVerbs(g *globals) []*cobra.Command {
	return []*cobra.Command{
		agentVerb{
			"pause", "Stop new runs of an agent, or of all agents",
			"Stop new runs of an agent, or of all agents, until mailboxd resume. A pause outlasts\na restart of the daemon. Running tasks go on, and new tasks are held.",
			"  mailboxd pause reviewer --reason 'its model is down'\n  mailboxd pause", (*client.Client).Pause,
		}.command(g, false),
		agentVerb{
			"resume", "Allow new runs again",
			"End the pause of an agent or, without an argument, the global pause. The global\npause and each agent's pause are separate. mailboxd ps --held shows which pause a\ntask waits for. For an agent, also stop waiting for a usage limit of its provider.",
			"  mailboxd resume reviewer\n  mailboxd resume", (*client.Client).Resume,
		}.command(g, false),
		agentVerb{
			"drain", "Pause, and wait until all runs have ended",
			"Pause an agent, or all agents, and return when all runs have ended and every result\nis written. The pause lasts until mailboxd resume. Tasks that were claimed from an\ninbox are not runs; they can still be answered.",
			"  mailboxd drain && systemctl --user stop mailboxd", (*client.Client).Drain,
		}.command(g, true),
	}
}

func (v agentVerb) command(g *globals, waits bool) *cobra.Command {
	var request client.AgentOptions
	asJSON, timeout := false, time.Duration(0)
	cmd := &cobra.Command{
		Use: v.name + " [AGENT]", Short: v.short, Long: v.long, Example: v.example,
		Args: cobra.MaximumNArgs(1),
		RunE: withDaemon(g, func(cmd *cobra.Command, args []string, _ *reader.Reader, daemon *client.Client) error {
			if len(args) > 0 && args[0] == "" {
				return exit.With(exit.Usage, "the agent's name is empty; leave it out to %s every agent", v.name)
			}
			request.Agent, request.Timeout = strings.Join(args, ""), formatTimeout(timeout)
			paused, err := v.do(daemon, cmd.Context(), request)
			if err != nil {
				return err
			}
			if asJSON {
				return term.PrintJSON(cmd.OutOrStdout(), paused)
			}
			return printPauses(cmd.OutOrStdout(), v.name, request.Agent, paused.Paused)
		}),
	}
	cmd.Flags().StringVar(&request.Reason, "reason", "", "the reason, for the record")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	if waits {
		cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait; 0: no limit")
	}
	return cmd
}

// printPauses prints what was resumed, and which pauses there are.
func printPauses(w io.Writer, verb, agent string, paused []string) error {
	var words []string
	if verb == "resume" {
		words = append(words, "resumed: "+agentOrAll(agent))
	}
	if len(paused) > 0 {
		names := make([]string, len(paused))
		for i, name := range paused {
			names[i] = agentOrAll(name)
		}
		words = append(words, "paused: "+strings.Join(names, ", "))
	}
	_, err := fmt.Fprintln(w, term.Escape(strings.Join(words, "; ")))
	return err
}

// agentOrAll names an agent, or all of them.
func agentOrAll(agent string) string {
	if agent == store.Everyone {
		return "every agent"
	}
	return agent
}
