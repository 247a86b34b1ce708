package main

import (
	"slices"

	"github.com/spf13/cobra"

	"mailboxd/internal/config"
	"mailboxd/internal/exit"
	"mailboxd/internal/lint"
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
		Short: "Check task, result, manifest and definition files without sending them",
		Long: `Lint checks files as the daemon would, as far as the lines alone allow, with the codes
of CLowl and CAP where they are in these. A file says by its content what it is, unless
a flag does. It is at least as strict as AINL's own validator, and takes its flags:
what that one refuses is an error here, also where the daemon takes it.
Exit code 1: errors.`,
		Example: `  mailboxd lint tasks.jsonl request.json
  mailboxd lint --tasks-jsonl tasks.jsonl --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			how, err := config.LoadIntake(g.config, g.root)
			if err != nil {
				return err
			}
			f.Any = args
			if len(slices.Concat(f.Any, f.TaskLines, f.Tasks, f.Results)) == 0 {
				return exit.With(exit.Usage, "no file to check; see mailboxd lint --help")
			}
			report, err := lint.Check(f.Files, lint.Rules{MaxLineBytes: how.MaxLineBytes, Reading: how.Reading()})
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
