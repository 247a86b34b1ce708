package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
)

// helpColumns is the width of help texts, and widestHelp that on a wider terminal.
const helpColumns, widestHelp = 80, 100

// setHelp wraps help texts to the width of the terminal. Descriptions of flags are
// indented below their first line.
func setHelp(root *cobra.Command) {
	cobra.AddTemplateFunc("wrap", func(cmd *cobra.Command, text string) string { return term.Wrap(text, columnsOf(cmd)) })
	cobra.AddTemplateFunc("flags", func(cmd *cobra.Command, f *pflag.FlagSet) string {
		return strings.TrimRight(f.FlagUsagesWrapped(columnsOf(cmd)), "\n ")
	})
	root.SetHelpCommand(helpCommand())
	root.Flags().BoolP("version", "v", false, "print the version")
	addHelpFlag(root)
	root.SetHelpTemplate("{{wrap . (or .Long .Short)}}\n\n{{.UsageString}}\n")
	root.SetUsageTemplate(flagUsages.ReplaceAllString(root.UsageTemplate(), "{{flags . .$1}}"))
}

// addHelpFlag adds --help to a command and those below it, in our own words.
func addHelpFlag(cmd *cobra.Command) {
	cmd.Flags().BoolP("help", "h", false, "print this help")
	for _, sub := range cmd.Commands() {
		addHelpFlag(sub)
	}
}

// flagUsages is what cobra's template has for flags, which it does not wrap.
var flagUsages = regexp.MustCompile(`{{\.(\w+)\.FlagUsages \| trimTrailingWhitespaces}}`)

// columnsOf returns the width of the help of a command.
func columnsOf(cmd *cobra.Command) int {
	if columns := term.ScreenOf(cmd.OutOrStdout()).Columns; columns > 0 {
		return min(columns, widestHelp)
	}
	return helpColumns
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		GroupID: "Maintenance",
		Short:   "Print the help of a command",
		Long:    "Print the help of a command, as mailboxd COMMAND --help does.",
		Example: "  mailboxd help send\n  mailboxd help service install",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return exit.With(exit.Usage, "no command %q; mailboxd --help lists the commands", strings.Join(args, " "))
			}
			return about.Help()
		},
	}
}
