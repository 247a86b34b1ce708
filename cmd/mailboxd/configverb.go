package main

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"mailboxd/internal/agent"
	"mailboxd/internal/config"
	"mailboxd/internal/lint"
	"mailboxd/internal/schema"
	"mailboxd/internal/term"
)

func configCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check or show the configuration",
		Long:  "Check the configuration file, or show the value of every key.",
		Example: `  mailboxd config check
  mailboxd config show`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(configCheckCommand(g), configShowCommand(g))
	return cmd
}

func configCheckCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration, manifests and schemas",
		Long: `Check the configuration, the manifests and the schemas as serve does when it
starts. Print every error and warning. The exit code is 1 if there are errors.`,
		Example: "  mailboxd config check --config ./config.yaml",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report := lint.NewReport()
			if cfg, err := g.load(); err != nil {
				report.Fail("configuration", err)
			} else {
				checkAgents(report, cfg)
			}
			return report.Print(cmd.OutOrStdout(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print {ok, issues: [{kind, path, message}]}")
	return cmd
}

// checkAgents adds what is wrong with the agents of a configuration.
func checkAgents(r *lint.Report, cfg config.Config) {
	members := cfg.ReadAgents()
	for _, m := range members {
		at := fmt.Sprintf("agents[%d] %q", m.Index, m.Binding.ID)
		if m.Subject.Unfit != "" {
			r.Fail(at, fmt.Errorf("disabled: %s", m.Subject.Unfit))
		}
		for _, doubt := range m.Warnings {
			r.Warn(at, "manifest: "+doubt.String())
		}
		for _, doubt := range m.Unknown {
			r.Warn(at, doubt)
		}
	}
	if _, err := schema.Load(cfg.Policy.Schemas); err != nil {
		r.Fail("policy.schemas", err)
	}
	if _, err := cfg.Secrets(); err != nil {
		r.Fail("configuration", err)
	}
	if _, err := agent.New(config.Bindings(members), agent.Options{}); err != nil {
		r.Fail("configuration", err)
	}
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
	fmt.Fprintf(w, "# %s\n", term.Escape(file))
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
