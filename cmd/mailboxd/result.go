package main

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/view"
	"mailboxd/mailbox"
)

func resultCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "result ID...",
		Short: "Print the result of a task",
		Long: `Print the final result of a task. Exit codes: 0 ok or partial, 3 error or
cancelled, 4 rejected or denied, 5 no result yet, 6 no such task.`,
		Example: "  mailboxd result nightly-report\n  mailboxd result nightly-report --json | jq .output.summary",
		Args:    cobra.MinimumNArgs(1),
		RunE: withReader(g, func(cmd *cobra.Command, args []string, r *reader.Reader) error {
			return forEach(cmd, args, func(arg string) error { return showResult(cmd, r, arg, asJSON) })
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each result as one JSON object on one line")
	return cmd
}

func showResult(cmd *cobra.Command, r *reader.Reader, arg string, asJSON bool) error {
	id, err := r.Find(cmd.Context(), arg)
	if err != nil {
		return err
	}
	if !r.IsFinal(cmd.Context(), id) {
		return r.Unfinished(cmd.Context(), id) // a file that is there all the same is no answer
	}
	raw, err := mailbox.ReadResult(r.Root, id)
	if errors.Is(err, fs.ErrNotExist) {
		return r.Unfinished(cmd.Context(), id)
	}
	if err != nil {
		return err
	}
	if err := view.PrintResultOf(cmd.OutOrStdout(), shownID(cmd, r.Location, id), raw, asJSON); err != nil {
		return err
	}
	return verdictOf(raw)
}

// verdictOf turns how a task ended into an exit code.
func verdictOf(raw []byte) error {
	r, _ := envelope.DecodeResult(raw)
	switch r.Status {
	case envelope.OK, envelope.Partial:
		return nil
	case envelope.Rejected:
		return &exit.Error{Code: exit.Rejected}
	}
	return &exit.Error{Code: exit.TaskFailed}
}
