package main

import (
	"context"

	"github.com/spf13/cobra"

	"mailboxd/internal/client"
	"mailboxd/internal/reader"
	"mailboxd/internal/term"
	"mailboxd/internal/view"
)

func threadCommand(g *globals) *cobra.Command {
	cmd := dialogueCommand(g, func(ctx context.Context, b reader.Records, id string) (client.Dialogue, error) {
		return b.Thread(ctx, id)
	})
	cmd.Use = "thread ID"
	cmd.Short = "Tell a conversation: who said what to whom, and what came of it"
	cmd.Long = `Thread tells in English what was said in a conversation, in whatever dialects, and
what happened meanwhile to the tasks in it. ID is the name of the conversation, a
task that is part of it, or the name of a trace.`
	cmd.Example = "  mailboxd thread T1\n  mailboxd thread T1 --json | jq '.messages[] | .from, .text'"
	return cmd
}

func traceCommand(g *globals) *cobra.Command {
	cmd := dialogueCommand(g, func(ctx context.Context, b reader.Records, id string) (client.Dialogue, error) {
		return b.Trace(ctx, id)
	})
	cmd.Use = "trace ID"
	cmd.Short = "Tell a chain of work over all its conversations"
	cmd.Long = `Trace tells in English what was said in a chain of work, over as many conversations
as it has. ID is the name of the trace (CLowl's tid), or of a task or a conversation that
is part of one. What is part of none is told as mailboxd thread does.`
	cmd.Example = "  mailboxd trace t-2026-03\n  mailboxd trace t-2026-03 --json | jq .tasks"
	return cmd
}

// dialogueCommand makes a command that prints a conversation.
func dialogueCommand(g *globals, read func(context.Context, reader.Records, string) (client.Dialogue, error)) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Args: cobra.ExactArgs(1),
		RunE: withReader(g, func(cmd *cobra.Command, args []string, r *reader.Reader) error {
			d, err := r.Dialogue(cmd.Context(), args[0], read)
			if err != nil {
				return err
			}
			if asJSON {
				return term.PrintJSON(cmd.OutOrStdout(), d)
			}
			return view.Timeline{Dialogue: d}.Print(term.ScreenOf(cmd.OutOrStdout()))
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
