package main

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/config"
)

func configCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check or show the configuration",
		Long: `Check the configuration file, show the value of every key, compare it with the
daemon's, or print its schema.`,
		Example: `  mailboxd config check
  mailboxd config show
  mailboxd config diff
  mailboxd config schema > ~/.config/mailboxd/config.schema.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(configCheckCommand(g), configShowCommand(g), configDiffCommand(g), configSchemaCommand())
	return cmd
}

func configCheckCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and what it names",
		Long: `Check the configuration file, the variables of the environment, and what the
configuration names: manifests, definitions, schemas, secrets, programs and
directories. Print every error and warning with its line and column. The exit code
is 1 if there are errors. serve starts without a program or a directory, which may
come later, and logs a warning; it refuses every other error of the configuration.`,
		Example: "  mailboxd config check --config ./config.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found, err := config.Examine(g.config, g.root)
			if err != nil {
				return err
			}
			return found.Mistakes.Print(cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print {ok, issues: [{kind, path, line, column, key, message}]}")
	return cmd
}

func configShowCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "Show every key, its value and the source of the value",
		Long:    "Show every key with the value that serve would use at its next start, and where\nthe value comes from: a flag, the environment, the file or the defaults.",
		Example: "  mailboxd config show | grep -v default",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, from, err := config.Read(g.config, g.root)
			if err != nil {
				return err
			}
			return printSettings(cmd.OutOrStdout(), cmp.Or(from.File, "no file"), cfg.Settings(from), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per key")
	return cmd
}

func printSettings(w io.Writer, file string, settings []config.Setting, asJSON bool) error {
	if asJSON {
		for _, s := range settings {
			if err := term.PrintJSON(w, s); err != nil {
				return err
			}
		}
		return nil
	}
	fmt.Fprintf(w, "# %s, for the next start; what the daemon has in force: mailboxd config diff\n", term.Escape(file))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range settings {
		text, err := json.Marshal(s.Value)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.Key, term.Escape(string(text)), s.From)
	}
	return table.Flush()
}

func configSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration, for editors",
		Long: `Print the JSON Schema of the configuration: every key with its type, its default
and what it is for. An editor with the YAML language server completes and checks
the file by it, if the first line of the file is
# yaml-language-server: $schema=./config.schema.json
init writes both. Print the schema again after an upgrade.`,
		Example: "  mailboxd config schema > ~/.config/mailboxd/config.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.Schema)
			return err
		},
	}
}
