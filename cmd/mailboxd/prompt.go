package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mailboxd/envelope/dialect"
)

func promptCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "prompt clowl|clutch",
		Short: "Print instructions for a model that speaks CLowl or Clutch",
		Long: `Print a part of a system prompt that tells a model how to write messages of
CLowl v0.2 or Clutch v0. The model leaves out ids and times; mailboxd adds them.`,
		Example:   "  mailboxd prompt clowl >> system-prompt.txt",
		ValidArgs: []string{"clowl", "clutch"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			prompt := map[string]string{"clowl": dialect.Prompt(), "clutch": dialect.ClutchPrompt()}[args[0]]
			_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.TrimRight(prompt, "\n"))
			return err
		},
	}
}
