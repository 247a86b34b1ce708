package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/mailbox"
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
			return file.print(cmd.OutOrStdout())
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// A caseFile is all that is known of one task.
type caseFile struct {
	Task    taskView       `json:"task"`
	Earlier []taskView     `json:"earlier_revisions,omitempty"`
	Request jsontext.Value `json:"request,omitempty"`
	Runs    []runView      `json:"runs,omitempty"`
	Story   []eventView    `json:"events"`
	Result  jsontext.Value `json:"result,omitempty"`
}

type runView struct {
	Attempt  int       `json:"attempt"`
	PID      int       `json:"pid,omitempty"`
	Started  time.Time `json:"started_at,omitzero"`
	Finished time.Time `json:"finished_at,omitzero"`
	ExitCode int       `json:"exit_code"`
	Signal   string    `json:"signal,omitempty"`
	Cause    string    `json:"cause,omitempty"`
	Dir      string    `json:"dir"`
}

type eventView struct {
	Seq      int64          `json:"seq"`
	Time     time.Time      `json:"time"`
	Revision int            `json:"revision"`
	Kind     string         `json:"kind"`
	Data     jsontext.Value `json:"data,omitempty"`
}

func (d *desk) file(ctx context.Context, id envelope.ID) (*caseFile, error) {
	if d.memory == nil {
		return nil, exitWith(exitNoTask, "nothing is known of %s but its result; see: mailboxd result %[1]s", id)
	}
	revisions, err := d.memory.Revisions(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(revisions) == 0 {
		return nil, exitWith(exitNoTask, "nothing is known of %s but its result; see: mailboxd result %[1]s", id)
	}
	last := revisions[len(revisions)-1]
	file := &caseFile{Task: viewOf(last)}
	for _, r := range revisions[:len(revisions)-1] {
		file.Earlier = append(file.Earlier, viewOf(r))
	}
	raw, err := d.memory.Raw(ctx, last.Seq)
	if err != nil && !errors.Is(err, ledger.ErrUnknown) { // it may be too old to be kept
		return nil, err
	}
	if jsontext.Value(raw).IsValid() {
		file.Request = raw
	}
	if result, err := mailbox.ReadResult(d.root, id); err == nil && jsontext.Value(result).IsValid() {
		file.Result = result // anything else in its place is no result, and hides nothing of the rest
	}
	return file, d.history(ctx, last, file)
}

// history adds the runs and events of a task.
func (d *desk) history(ctx context.Context, row ledger.Task, file *caseFile) error {
	runs, err := d.memory.Runs(ctx, row.Seq)
	if err != nil {
		return err
	}
	for _, r := range runs {
		file.Runs = append(file.Runs, runView{
			Attempt: r.Attempt, PID: r.PID, Started: r.Started, Finished: r.Finished,
			ExitCode: r.ExitCode, Signal: r.Signal, Cause: r.Cause, Dir: d.state.RunDir(row.ID, row.Revision, r.Attempt),
		})
	}
	events, err := d.memory.Events(ctx, row.ID, 0, 1000)
	if err != nil {
		return err
	}
	for _, e := range events {
		file.Story = append(file.Story, eventView{Seq: e.Seq, Time: e.Time, Revision: e.Revision, Kind: e.Kind, Data: e.Data})
	}
	return nil
}

func (f *caseFile) print(w io.Writer) error {
	t := f.Task
	fmt.Fprintf(w, "%s  revision %d  %s\n", plain(string(t.ID)), t.Revision, whereabouts(ledger.Task{
		State: t.State, Reasons: t.Held, Status: t.Status, Kind: t.Kind,
	}))
	fmt.Fprintf(w, "  agent      %s\n  requester  %s\n  type       %s\n", plain(t.Agent), plain(t.Requester), plain(t.Type))
	fmt.Fprintf(w, "  received   %s from %s\n", stamp(t.Received), plain(t.File))
	if !t.Deadline.IsZero() {
		fmt.Fprintf(w, "  deadline   %s\n", stamp(t.Deadline))
	}
	if why := waiting(t); why != "" {
		fmt.Fprintf(w, "  why        %s\n", why)
	}
	for _, r := range f.Runs {
		fmt.Fprintf(w, "  run %-2d     %s\n", r.Attempt, r.Dir)
	}
	fmt.Fprintln(w, "\nwhat happened")
	for _, e := range f.Story {
		fmt.Fprintf(w, "  %s  r%d  %-16s %s\n", stamp(e.Time), e.Revision, e.Kind, plain(string(e.Data)))
	}
	if f.Result == nil {
		return nil
	}
	fmt.Fprintln(w, "\nresult")
	return printResult(w, f.Result, false)
}

// waiting says what a task that is not done waits for, and who can help.
func waiting(t taskView) string {
	switch t.State {
	case ledger.Received:
		return "an earlier revision of it is still running"
	case ledger.Queued:
		return "waits for a free slot; is mailboxd serve running?"
	case ledger.Running:
		return fmt.Sprintf("its agent is at work, attempt %d", t.Attempt)
	case ledger.Held:
		words := map[ledger.Reason]string{
			ledger.Approval:      "a person has to approve it",
			ledger.ChangeWindow:  "its change window has not begun",
			ledger.Capacity:      "it is tried again after a pause",
			ledger.ResultInvalid: "results/" + plain(string(t.ID)) + ".json is no result for it: mend or remove that file",
		}
		why := ""
		for _, r := range t.Held {
			if why != "" {
				why += "; "
			}
			why += words[r]
		}
		if !t.Until.IsZero() {
			why += ", looked at again at " + stamp(t.Until)
		}
		return why
	}
	return ""
}

func stamp(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }
