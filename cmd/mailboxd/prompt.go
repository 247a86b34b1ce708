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
		Short: "Print what a model has to be told to speak a dialect",
		Long: `Prompt prints a fragment for a model's system prompt. A model that was told that prints
messages of CLowl v0.2, without ids and times, for mailboxd supplies these.`,
		Example:   "  mailboxd prompt clowl >> system-prompt.txt",
		ValidArgs: []string{"clowl"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.TrimRight(dialect.Prompt(), "\n"))
			return err
		},
	}
}
