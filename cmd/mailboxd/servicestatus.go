package main

import (
	"github.com/spf13/cobra"

	"mailboxd/internal/exit"
	"mailboxd/internal/setup"
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
			s, err := setup.ReadServiceStatus(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				err = term.PrintJSON(cmd.OutOrStdout(), s)
			} else {
				err = s.Print(cmd.OutOrStdout())
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
