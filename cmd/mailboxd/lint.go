package main

import (
	"slices"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/lint"
	"mailboxd/internal/operating/config"
)

// lintFlags name files by what they hold, spelled as AINL's own validator
// spells them; files without a flag are told apart by what is in them.
type lintFlags struct {
	lint.Files
	asJSON bool
}

func lintCommand(g *globals) *cobra.Command {
	f := &lintFlags{}
	cmd := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Check files of tasks, results, manifests and definitions",
		Long: `Check files as the daemon would, without sending them. Lint finds the kind of a
file from its content, unless a flag names it. Findings about CLowl, CAP and Clutch
messages have the codes of these protocols. Lint accepts no file that AINL's own
validator refuses, even if the daemon would accept it. The exit code is 1 if there
are errors.`,
		Example: `  mailboxd lint tasks.jsonl request.json
  mailboxd lint --tasks-jsonl tasks.jsonl --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			how, err := config.LoadLineRules(g.config, g.root)
			if err != nil {
				return err
			}
			f.Any = args
			if len(slices.Concat(f.Any, f.TaskLines, f.Tasks, f.Results)) == 0 {
				return exit.With(exit.Usage, "no file to check; see mailboxd lint --help")
			}
			report, err := lint.Check(f.Files, lint.Rules{MaxLineBytes: how.MaxLineBytes, Reading: how.Reading(), NearMisses: how.NearMisses})
			if err != nil {
				return err
			}
			return report.Print(cmd.OutOrStdout(), f.asJSON)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.TaskLines, "tasks-jsonl", nil, "file with one task request per line")
	flags.StringArrayVar(&f.Tasks, "task-json", nil, "file with one task request")
	flags.StringArrayVar(&f.Results, "result-json", nil, "file with one task result")
	flags.BoolVar(&f.asJSON, "json", false, "print {ok, issues: [{kind, path, message}]}")
	return cmd
}
