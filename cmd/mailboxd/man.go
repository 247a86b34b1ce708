package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write man pages",
		Long:  "Write a man page for each command to DIR. The command creates DIR if necessary.",
		Example: `  mailboxd man ~/.local/share/man/man1
  mailboxd man /tmp/man && man /tmp/man/mailboxd-send.1`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("create directory: %w", err)
			}
			header := &doc.GenManHeader{Section: "1", Source: "mailboxd " + version(), Manual: "mailboxd"}
			cmd.Root().DisableAutoGenTag = true // no line about the generator
			if err := doc.GenManTree(cmd.Root(), header, args[0]); err != nil {
				return fmt.Errorf("write man pages: %w", err)
			}
			return nil
		},
	}
}
