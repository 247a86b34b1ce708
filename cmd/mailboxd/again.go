package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/compose"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/view"
)

func againCommand(g *globals) *cobra.Command {
	id, edit, session, asJSON := "", false, false, false
	cmd := &cobra.Command{
		Use:   "again ID",
		Short: "Send a copy of a task under a new id",
		Long: `Send the request of a task once more, as a new task in your name. A deadline that has
passed and the parent task are left out. With --edit, you change the copy in $VISUAL or
$EDITOR before. With --continue, its agent goes on in the session of the task, in the same
directory. To run the same task once more, use mailboxd retry.`,
		Example: "  mailboxd again nightly-report\n  mailboxd again nightly-report --edit",
		Args:    cobra.ExactArgs(1),
		RunE: withReader(g, func(cmd *cobra.Command, args []string, r *reader.Reader) error {
			found, err := r.Find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if id == "" {
				id = uuid.NewString()
			} else if _, err := envelope.ParseID(id); err != nil {
				return exit.With(exit.Usage, "--id %q %w", id, err)
			}
			details, err := r.Details(cmd.Context(), found)
			if err != nil {
				return err
			}
			request, err := compose.Request(details)
			if err != nil {
				return err
			}
			request, left, err := compose.Copy(request, envelope.ID(id), loginName(), time.Now())
			if err != nil {
				return err
			}
			if session {
				if request, err = compose.Continue(request, found); err != nil {
					return err
				}
			}
			for _, what := range left {
				fmt.Fprintln(cmd.ErrOrStderr(), "mailboxd: left out", what)
			}
			if edit {
				editor, err := editorOf(cmd, g)
				if err != nil {
					return err
				}
				changed, err := editor.Edit(cmd.Context(), request)
				if err != nil {
					return err
				}
				if changed != nil {
					request = changed
				}
			}
			_, err = submit(cmd, g, request, asJSON)
			return err
		}),
	}
	cmd.Flags().StringVar(&id, "id", "", "task_id of the copy (default: a new one)")
	cmd.Flags().BoolVar(&edit, "edit", false, "edit the copy before")
	cmd.Flags().BoolVar(&session, "continue", false, "in the session of the task")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func editCommand(g *globals) *cobra.Command {
	which, asJSON := &chosen{}, false
	cmd := &cobra.Command{
		Use:   "edit ID",
		Short: "Change a task that has not started",
		Long: `Change the request of a task in $VISUAL or $EDITOR. What you save becomes a new revision
of the task, which is checked and approved anew. The task is held while you edit.
A task that has started can't be changed: see mailboxd again --edit.`,
		Example: "  mailboxd edit nightly-report",
		Args:    cobra.ExactArgs(1),
		RunE: withDaemon(g, func(cmd *cobra.Command, args []string, r *reader.Reader, daemon *client.Client) error {
			id, err := which.find(cmd.Context(), r, args[0])
			if err != nil {
				return err
			}
			details, err := r.Details(cmd.Context(), id)
			if err == nil {
				err = compose.Unstarted(details.Task)
			}
			if err != nil {
				return err
			}
			return compose.WhileHeld(cmd.Context(), daemon, details.Task, func() error { return editTask(cmd, g, r, details, asJSON) })
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	which.add(cmd)
	return cmd
}

// editTask has a person change the request of a task, sends what was changed, and waits until the
// daemon has taken it.
func editTask(cmd *cobra.Command, g *globals, r *reader.Reader, details client.TaskDetails, asJSON bool) error {
	request, err := compose.Request(details)
	if err != nil {
		return err
	}
	id := details.Task.ID
	editor, err := editorOf(cmd, g)
	if err != nil {
		return err
	}
	if request, err = editor.Edit(cmd.Context(), request); err != nil {
		return err
	}
	if request == nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "mailboxd: %s is not changed\n", id)
		return nil
	}
	if changed, _ := envelope.DecodeTask(request, envelope.Strict); changed.ID != id {
		return exit.With(exit.Usage, "task_id: must stay %s; for a new task use: %s", id, view.Command("again", id, "--edit"))
	}
	now, err := r.Latest(cmd.Context(), id)
	if err == nil {
		err = compose.Unstarted(now)
	}
	if err != nil {
		return err
	}
	s, err := submit(cmd, g, request, asJSON)
	if err != nil {
		return err
	}
	return s.AwaitIntake(cmd.Context(), r.Location)
}

// editorOf is the editor of the user.
func editorOf(cmd *cobra.Command, g *globals) (compose.Editor, error) {
	cfg, err := g.partial(io.Discard)
	command := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	return compose.Editor{
		Command: command, In: cmd.InOrStdin(), Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr(), NearMisses: nearMissesOf(cfg),
	}, err
}

// submit appends a request and prints its id.
func submit(cmd *cobra.Command, g *globals, request []byte, asJSON bool) (reader.Submission, error) {
	cfg, err := g.partial(cmd.ErrOrStderr())
	if err != nil {
		return reader.Submission{}, err
	}
	s, err := appendTask(cmd.Context(), cfg, request, true)
	if err != nil {
		return s, err
	}
	return s, s.Print(cmd.OutOrStdout(), asJSON)
}
