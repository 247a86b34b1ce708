package main

import (
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/lint"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/running/schema"
)

func schemaCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "List, compare and test the schemas of answers",
		Long: `List the JSON Schemas that requests and workflows can name, compare two versions of
one, and hold recorded answers against a new version.`,
		Example: `  mailboxd schema list
  mailboxd schema check schemas/acme/report/v2.json schemas/acme/report/v3.json
  mailboxd schema test report-v3.json --history --as schema://acme/report/v2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(schemaListCommand(g), schemaCheckCommand(), schemaTestCommand(g))
	return cmd
}

func schemaListCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the schemas that requests can name",
		Long:    "List the schemas that are built in and those of policy.schemas, with the payload\ntypes of Clutch that they describe.",
		Example: "  mailboxd schema list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := g.load()
			if err != nil {
				return err
			}
			set, err := schema.Load(cfg.Policy.Schemas)
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, ref := range set.Refs() {
				origin := "policy.schemas"
				if schema.IsBuiltIn(ref) {
					origin = "built in"
				}
				fmt.Fprintf(table, "%s\t%s\t%s\n", ref, origin, schema.PayloadTypeOf(ref))
			}
			return table.Flush()
		},
	}
}

func schemaCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check OLD NEW",
		Short: "Find what the new version of a schema refuses",
		Long: `Compare two schema files. A change is breaking if a property became required, a type,
an enum or a bound became narrower, or an object was closed. The exit code is then 1.
A change is compatible if each answer that the old one allows surely fits the new one.
Of other changes, such as one of a pattern, it is unknown; schema test tells more.`,
		Example: "  mailboxd schema check schemas/acme/report/v2.json schemas/acme/report/v3.json",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var texts [2][]byte
			for i, path := range args {
				var err error
				if texts[i], err = os.ReadFile(path); err != nil {
					return fmt.Errorf("read schema: %w", err)
				}
			}
			c, err := schema.Compare(texts[0], texts[1])
			if err != nil {
				return err
			}
			for _, change := range c.Breaking {
				fmt.Fprintln(cmd.OutOrStdout(), "breaking:", term.Escape(change))
			}
			switch {
			case len(c.Breaking) > 0:
				return exit.With(exit.Failed, "the new schema refuses what the old one allows")
			case c.Same:
				fmt.Fprintln(cmd.OutOrStdout(), "same: both allow the same answers")
			case c.Compatible:
				fmt.Fprintln(cmd.OutOrStdout(), "compatible: the new schema allows each answer that the old one allows")
			default:
				fmt.Fprintln(cmd.OutOrStdout(), "unknown: no breaking change found; see: mailboxd schema test NEW --history")
			}
			return nil
		},
	}
}

func schemaTestCommand(g *globals) *cobra.Command {
	test, history, since := lint.AnswerTest{}, false, time.Duration(0)
	cmd := &cobra.Command{
		Use:   "test FILE --history",
		Short: "Hold recorded answers against a schema file",
		Long: `Hold the recorded answers of finished tasks against a schema file: of those tasks
whose contract or workflow step names the schema. A file of policy.schemas is the
schema of its path; --as names the schema or payload type of another file. The exit
code is 1 if an answer does not fit.`,
		Example: `  mailboxd schema test report-v3.json --history --as schema://acme/report/v2
  mailboxd schema test report-v3.json --since 720h --as schema://acme/report/v2`,
		Args: cobra.ExactArgs(1),
		RunE: withReader(g, func(cmd *cobra.Command, args []string, r *reader.Reader) error {
			switch {
			case since < 0:
				return exit.With(exit.Usage, "--since %s: must not be negative", since)
			case since > 0:
				test.Since = time.Now().Add(-since)
			case !history:
				return exit.With(exit.Usage, "say which answers to test: --history, or --since 720h")
			}
			cfg, err := g.load()
			if err != nil {
				return err
			}
			test.File, test.Dir, test.Naming = args[0], cfg.Policy.Schemas, cfg.Steps().Names
			return test.Run(cmd.Context(), r, cmd.OutOrStdout())
		}),
	}
	cmd.Flags().BoolVar(&history, "history", false, "test the recorded answers")
	cmd.Flags().DurationVar(&since, "since", 0, "only answers of tasks received within this time, such as 720h")
	cmd.Flags().StringVar(&test.As, "as", "", "schema or payload type that the file replaces")
	cmd.Flags().IntVar(&test.Limit, "limit", 0, "only so many of the latest answers; 0: all")
	return cmd
}
