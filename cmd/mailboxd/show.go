package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/client"
	"mailboxd/internal/ledger"
)

func showCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show all that is known of a task, and why it is where it is",
		Example: "  mailboxd show nightly-report",
		Args:    cobra.ExactArgs(1),
		RunE: atDesk(g, func(cmd *cobra.Command, args []string, desk *desk) error {
			id, err := desk.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			file, err := desk.file(cmd.Context(), id)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), file)
			}
			return printCase(cmd.OutOrStdout(), file)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// file returns all that is known of a task.
func (d *desk) file(ctx context.Context, id envelope.ID) (client.CaseFile, error) {
	file, err := client.CaseFile{}, error(ledger.ErrUnknown)
	if d.books != nil {
		file, err = d.books.CaseFile(ctx, id)
	}
	if noTask(err) {
		err = exitWith(exitNoTask, "nothing is known of %s but its result; see: mailboxd result %[1]s", id)
	}
	return file, err
}

func printCase(w io.Writer, f client.CaseFile) error {
	t := f.Task
	fmt.Fprintf(w, "%s  revision %d  %s\n", plain(string(t.ID)), t.Revision, whereabouts(t))
	fmt.Fprintf(w, "  agent      %s\n  requester  %s\n  type       %s\n", plain(t.Agent), plain(t.Requester), plain(t.Type))
	fmt.Fprintf(w, "  received   %s from %s\n", stamp(t.Received), plain(t.File))
	if !t.Deadline.IsZero() {
		fmt.Fprintf(w, "  deadline   %s\n", stamp(t.Deadline))
	}
	if f.Why != "" {
		fmt.Fprintf(w, "  why        %s\n", plain(f.Why))
	}
	printApproval(w, f.Asked)
	for _, r := range f.Runs {
		fmt.Fprintf(w, "  run %-2d     %s\n", r.Attempt, r.Dir)
	}
	fmt.Fprintln(w, "\nwhat happened")
	for _, e := range f.Story {
		fmt.Fprintf(w, "  %s  r%d  %-16s %s\n", stamp(e.Time), e.Revision, e.Kind, plain(string(e.Data)))
	}
	if f.Unshown != nil {
		fmt.Fprintln(w, "\nanswer, which its requester was not shown")
		if err := printResult(w, f.Unshown, false); err != nil {
			return err
		}
	}
	if f.Result == nil {
		return nil
	}
	fmt.Fprintln(w, "\nresult")
	return printResult(w, f.Result, false)
}

func stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
