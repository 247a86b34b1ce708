package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/exit"
	"mailboxd/internal/task"
	"mailboxd/internal/term"
	"mailboxd/mailbox"
)

func resultCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "result ID",
		Short: "Print the result of a task",
		Long: `Result prints the final result of a task and exits as it ended: 0 ok or partial, 3 in
error or cancelled, 4 rejected or denied; 5 when there is none yet.`,
		Example: "  mailboxd result nightly-report\n  mailboxd result nightly-report --json | jq .output.summary",
		Args:    cobra.ExactArgs(1),
		RunE: atDesk(g, func(cmd *cobra.Command, args []string, desk *desk) error {
			return showResult(cmd, desk, args[0], asJSON)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as one JSON object on one line")
	return cmd
}

func showResult(cmd *cobra.Command, desk *desk, arg string, asJSON bool) error {
	id, err := desk.find(cmd.Context(), arg)
	if err != nil {
		return err
	}
	if !desk.final(cmd.Context(), id) {
		return desk.unfinished(cmd.Context(), id) // a file that is there all the same is no answer
	}
	raw, err := mailbox.ReadResult(desk.root, id)
	if errors.Is(err, fs.ErrNotExist) {
		return desk.unfinished(cmd.Context(), id)
	}
	if err != nil {
		return err
	}
	if err := printResult(cmd.OutOrStdout(), raw, asJSON); err != nil {
		return err
	}
	return verdictOf(raw)
}

// unfinished says where a task without a result is.
func (d *desk) unfinished(ctx context.Context, id envelope.ID) error {
	row, err := d.latest(ctx, id)
	if err != nil {
		return err
	}
	if row.State == task.Done {
		return exit.With(exit.Failed, "the result of %s is missing; mailboxd serve puts it again", id)
	}
	around, err := d.around(ctx, []client.Task{row}, time.Now())
	if err != nil {
		return err
	}
	return exit.With(exit.Timeout, "task %s has no result yet: it is %s and waits for %s; see: %s", id, stateOf(row), around.wait(row), advise("show", id))
}

// final reports whether the result file of a task is, once it is there, the
// answer to its latest revision. What no ledger knows only the file can tell.
func (d *desk) final(ctx context.Context, id envelope.ID) bool {
	row, err := d.latest(ctx, id)
	return exit.CodeOf(err) == exit.NoTask || err == nil && row.ResultFinal
}

// printResult shows a result to a person, or as one line of JSON.
func printResult(w io.Writer, raw []byte, asJSON bool) error {
	r, findings := envelope.DecodeResult(raw)
	text := bytes.TrimRight(raw, "\n")
	switch {
	case asJSON:
		line := jsontext.Value(bytes.Clone(text))
		if err := line.Compact(); err != nil {
			return fmt.Errorf("read result: %w", err)
		}
		return term.PrintLine(w, line)
	case findings.Refused():
		_, err := fmt.Fprintln(w, term.Escape(string(text)))
		return err
	}
	fmt.Fprintf(w, "%s  %s  by %s\n", term.Escape(string(r.TaskID)), term.Escape(string(r.Status)), term.Escape(r.AgentID))
	if r.Output.Summary != "" {
		fmt.Fprintf(w, "\n%s\n\n", term.Indent(term.Escape(r.Output.Summary)))
	}
	for _, a := range r.Output.Actions {
		fmt.Fprintf(w, "  - %s: %s (%s)\n", term.Escape(a.Kind), term.Escape(a.Description), term.Escape(a.Status))
	}
	switch {
	case r.Error == (envelope.Error{}):
	case strings.Contains(r.Output.Summary, r.Error.Message):
		fmt.Fprintf(w, "  error     %s\n", term.Escape(string(r.Error.Kind)))
	default:
		fmt.Fprintf(w, "  error     %s: %s\n", term.Escape(string(r.Error.Kind)), term.Escape(r.Error.Message))
	}
	if r.Review.Required {
		fmt.Fprintf(w, "  review    %s\n", term.Escape(cmp.Or(r.Review.Reason, "asked for")))
	}
	if r.Cost != nil && *r.Cost != (envelope.Cost{}) {
		fmt.Fprintf(w, "  cost      %d tokens, %d cents\n", r.Cost.Tokens, r.Cost.USDCents)
	}
	_, err := fmt.Fprintf(w, "  took      %s\n", r.Time.Wall)
	return err
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
