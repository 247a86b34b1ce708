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
	"mailboxd/internal/client"
	"mailboxd/internal/exit"
	"mailboxd/internal/reader"
	"mailboxd/internal/term"
	"mailboxd/internal/view"
)

// A taskVerb is a command that changes one task.
type taskVerb struct {
	name, short, long, example string

	do func(*client.Client, context.Context, envelope.ID, client.ControlOptions) (client.Task, error)
}

func taskVerbs(g *globals) []*cobra.Command {
	return []*cobra.Command{
		taskVerb{
			"cancel", "End a task, with its run if it has one",
			"Cancel ends a task with status cancelled, and returns when nothing of its run is left.\nAfter --timeout it says so with exit code 5; the run is being ended all the same.",
			"  mailboxd cancel nightly-report --reason 'wrong input'", (*client.Client).Cancel,
		}.command(g, 30*time.Second),
		taskVerb{
			"hold", "Keep a task from starting",
			"Hold keeps a task from starting until mailboxd release, whatever else it waits for, and\nits later revisions too. What runs already goes on.",
			"  mailboxd hold nightly-report --reason 'not tonight'", (*client.Client).Hold,
		}.command(g, 0),
		taskVerb{
			"release", "Let go of a task that is held by hold, for a login, or since a ledger was lost",
			"Release ends a hold that an operator made, and lets a task run that may have run\nbefore the ledger was lost. Of a task that is over it tries the callback again that\nfailed; the exit code is 1 when it fails again. It is no approval: that is mailboxd\napprove.",
			"  mailboxd release nightly-report", (*client.Client).Release,
		}.command(g, 0),
		taskVerb{
			"retry", "Run a task again that ended in error, cancelled or rejected",
			"Retry runs the same request again as its next revision, judged anew by what is\nconfigured now. Its result takes the place of the old one, which goes to the history.",
			"  mailboxd retry nightly-report", (*client.Client).Retry,
		}.command(g, 0),
	}
}

// command makes the command. A patience of 0 means no flag --timeout.
func (v taskVerb) command(g *globals, patience time.Duration) *cobra.Command {
	var wish client.ControlOptions
	asJSON := false
	cmd := &cobra.Command{
		Use: v.name + " ID", Short: v.short, Long: v.long, Example: v.example,
		Args: cobra.ExactArgs(1),
		RunE: withDaemon(g, func(cmd *cobra.Command, args []string, r *reader.Reader, daemon *client.Client) error {
			id, err := r.Find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			wish.Timeout = formatTimeout(patience)
			task, err := v.do(daemon, cmd.Context(), id, wish)
			if err == nil && v.name == "release" && !asJSON {
				err = callbackFailure(cmd.Context(), r, id)
			}
			if err != nil {
				return err
			}
			return printChanged(cmd.OutOrStdout(), task, asJSON)
		}),
	}
	cmd.Flags().StringVar(&wish.Reason, "reason", "", "why, for the record")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the task as one JSON object")
	if patience > 0 {
		cmd.Flags().DurationVar(&patience, "timeout", patience, "how long to wait; 0 is for ever")
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
			"pause", "Keep an agent, or all of them, from starting anything until resume",
			"Pause lets nothing start any more, of one agent or of all, also after a restart of\nthe daemon, until mailboxd resume. What runs goes on; what comes is held.",
			"  mailboxd pause reviewer --reason 'its model is down'\n  mailboxd pause", (*client.Client).Pause,
		}.command(g, false),
		agentVerb{
			"resume", "End a pause: that of one agent, or the one of all",
			"Resume ends a pause of exactly that name: a pause of all agents is another than that\nof each. mailboxd ps --held says which one a task waits for.",
			"  mailboxd resume reviewer\n  mailboxd resume", (*client.Client).Resume,
		}.command(g, false),
		agentVerb{
			"drain", "Pause, and wait until nothing runs any more",
			"Drain pauses, and returns when nothing runs any more and every result is there. The\npause stays, also after a restart of the daemon, until mailboxd resume. What somebody\nhas claimed from an inbox runs nowhere, and can be answered all the same.",
			"  mailboxd drain && systemctl --user stop mailboxd", (*client.Client).Drain,
		}.command(g, true),
	}
}

func (v agentVerb) command(g *globals, waits bool) *cobra.Command {
	var wish client.AgentOptions
	asJSON, timeout := false, time.Duration(0)
	cmd := &cobra.Command{
		Use: v.name + " [AGENT]", Short: v.short, Long: v.long, Example: v.example,
		Args: cobra.MaximumNArgs(1),
		RunE: withDaemon(g, func(cmd *cobra.Command, args []string, _ *reader.Reader, daemon *client.Client) error {
			if len(args) > 0 && args[0] == "" {
				return exit.With(exit.Usage, "the agent's name is empty; without one, %s is for every agent", v.name)
			}
			wish.Agent, wish.Timeout = strings.Join(args, ""), formatTimeout(timeout)
			paused, err := v.do(daemon, cmd.Context(), wish)
			if err != nil {
				return err
			}
			if asJSON {
				return term.PrintJSON(cmd.OutOrStdout(), paused)
			}
			return printPauses(cmd.OutOrStdout(), paused.Paused)
		}),
	}
	cmd.Flags().StringVar(&wish.Reason, "reason", "", "why, for the record")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	if waits {
		cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait; 0 is for ever")
	}
	return cmd
}

func printPauses(w io.Writer, paused []string) error {
	words := "no agent is paused"
	if len(paused) > 0 {
		words = "paused: " + strings.Join(paused, ", ")
		if paused[0] == store.Everyone { // it comes first
			words = "paused: every agent" + strings.Join(paused, ", ")
		}
	}
	_, err := fmt.Fprintln(w, term.Escape(words))
	return err
}
