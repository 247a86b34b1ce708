package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"mailboxd/internal/exit"
	"mailboxd/internal/service"
	"mailboxd/internal/term"
)

func statusCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Say whether the service is installed and running",
		Long:    "Status says how the service stands. Its exit code is 7 when it does not run.",
		Example: "  mailboxd service status\n  mailboxd service status --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := standing(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				err = term.PrintJSON(cmd.OutOrStdout(), s)
			} else {
				err = s.print(cmd.OutOrStdout())
			}
			if err == nil && s.Active != "active" {
				err = &exit.Error{Code: exit.Down}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// A serviceView is how the service stands, as --json shows it.
type serviceView struct {
	Unit      string `json:"unit"`
	Installed bool   `json:"installed"`
	Active    string `json:"active"` // systemd's word; "" where it cannot be asked
	Enabled   bool   `json:"enabled"`
	Linger    bool   `json:"linger"`
	PID       string `json:"pid,omitempty"`
	Path      string `json:"path,omitempty"`
	Trouble   string `json:"trouble,omitempty"` // why systemd cannot be asked
}

func standing(ctx context.Context) (serviceView, error) {
	path, err := service.Path()
	if err != nil {
		return serviceView{}, err
	}
	view := serviceView{Unit: path, Linger: service.Lingers(ctx)}
	text, err := service.Installed()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return view, err
	}
	view.Installed, view.Path = err == nil, service.PathOf(text)
	status, err := service.Ask(ctx)
	if err != nil {
		view.Trouble = err.Error()
		return view, nil
	}
	view.Active, view.Enabled = status.Active, status.Enabled
	if status.PID != "0" {
		view.PID = status.PID
	}
	return view, nil
}

func (s serviceView) print(w io.Writer) error {
	if !s.Installed {
		fmt.Fprintln(w, "not installed; see: mailboxd service install")
	} else {
		fmt.Fprintf(w, "unit      %s\n", s.Unit)
	}
	switch {
	case s.Trouble != "":
		fmt.Fprintf(w, "state     unknown: %s\n", term.Escape(s.Trouble))
	case s.PID != "":
		fmt.Fprintf(w, "state     %s, process %s\n", s.Active, s.PID)
	default:
		fmt.Fprintf(w, "state     %s\n", s.Active)
	}
	if !s.Installed {
		return nil
	}
	fmt.Fprintf(w, "at login  %s\n", yesOrNo(s.Enabled, "starts", "does not start"))
	fmt.Fprintf(w, "at logout %s\n", yesOrNo(s.Linger, "goes on", "stops; if it is to go on: mailboxd service install --linger"))
	_, err := fmt.Fprintf(w, "PATH      %s\n", s.Path)
	return err
}

func yesOrNo(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
