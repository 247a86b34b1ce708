package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mailboxd/envelope/dialect"
)

func promptCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "prompt clowl",
		Short: "Print instructions for a model that speaks CLowl",
		Long: `Print a part of a system prompt that tells a model how to write CLowl v0.2
messages. The model leaves out ids and times; mailboxd adds them.`,
		Example:   "  mailboxd prompt clowl >> system-prompt.txt",
		ValidArgs: []string{"clowl"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.TrimRight(dialect.Prompt(), "\n"))
			return err
		},
	}
}
