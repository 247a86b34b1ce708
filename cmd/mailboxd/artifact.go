package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/cli/artifacts"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/stores/artifact"
)

func artifactCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "artifact",
		Short: "List, put, copy and verify the files that tasks share",
		Long: `List, put, copy and verify artifacts: files that agents published with their answers, or
that you put, each under the SHA-256 of its bytes. A task uses one by its name in
input.refs: artifact:sha256:DIGEST. The commands need no daemon.`,
		Example: "  mailboxd artifact ls",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(artifactListCommand(g), artifactGetCommand(g), artifactPutCommand(g), artifactVerifyCommand(g))
	return cmd
}

// withArtifacts opens the artifacts of the mailbox of a command.
func withArtifacts(
	g *globals, run func(cmd *cobra.Command, args []string, m artifacts.Mailbox) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, at, err := located(g, cmd)
		if err != nil {
			return err
		}
		r, err := openLedger(cmd, at)
		if err != nil {
			return err
		}
		defer func() { _ = r.Close() }()
		return run(cmd, args, artifacts.Mailbox{Store: artifact.In(at.State, cfg.Artifacts.MaxBytes), Ledger: r})
	}
}

func artifactListCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List the artifacts, the latest last",
		Long:    "List the artifacts, the latest last, with the tasks that published them.",
		Example: "  mailboxd artifact ls --json | jq -r .uri",
		Args:    cobra.NoArgs,
		RunE: withArtifacts(g, func(cmd *cobra.Command, _ []string, m artifacts.Mailbox) error {
			list, failed := m.List(cmd.Context())
			return errors.Join(failed, artifacts.Print(cmd.OutOrStdout(), list, asJSON))
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

func artifactGetCommand(g *globals) *cobra.Command {
	out := ""
	cmd := &cobra.Command{
		Use:   "get ARTIFACT",
		Short: "Print an artifact, or copy it to a file",
		Long: `Print an artifact, or copy it to a file, after its bytes were compared with its name.
ARTIFACT is the name, the digest, or the beginning of the digest.`,
		Example: "  mailboxd artifact get 9f86d081 -o report.pdf",
		Args:    cobra.ExactArgs(1),
		RunE: withArtifacts(g, func(cmd *cobra.Command, args []string, m artifacts.Mailbox) error {
			digest, err := m.Find(args[0])
			switch {
			case err != nil:
				return err
			case out != "":
				return m.Store.Export(digest, out)
			case term.IsTerminal(cmd.OutOrStdout()):
				return exit.With(exit.Usage, "an artifact may control a terminal; name a file: -o FILE")
			}
			return m.Store.Write(digest, cmd.OutOrStdout())
		}),
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "`FILE` to write; there must be none of that name")
	return cmd
}

func artifactPutCommand(g *globals) *cobra.Command {
	level := ""
	cmd := &cobra.Command{
		Use:   "put FILE...",
		Short: "Keep files as artifacts, and print their names",
		Long: `Keep files as artifacts, and print their names. Tasks whose agents may see content of
this sensitivity can use them. mailboxd gc removes an artifact that no task names when
it is as old as the run directories that it removes.`,
		Example: "  mailboxd artifact put report.pdf --sensitivity confidential",
		Args:    cobra.MinimumNArgs(1),
		RunE: withArtifacts(g, func(cmd *cobra.Command, args []string, m artifacts.Mailbox) error {
			of, ok := envelope.ParseSensitivity(level)
			if !ok {
				return exit.With(exit.Usage, "--sensitivity is %q; write public, internal, confidential or restricted", level)
			}
			for _, path := range args {
				uri, err := m.Put(path, of)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), uri); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	cmd.Flags().StringVar(&level, "sensitivity", "internal", "`LEVEL` of the files: public, internal, confidential or restricted")
	return cmd
}

func artifactVerifyCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [ARTIFACT...]",
		Short: "Compare artifacts with their names",
		Long: `Read artifacts, or all without an argument, and print those whose bytes are not what
their names say. The exit code is 1 if there is one.`,
		Example: "  mailboxd artifact verify",
		RunE: withArtifacts(g, func(cmd *cobra.Command, args []string, m artifacts.Mailbox) error {
			return m.Verify(cmd.OutOrStdout(), args)
		}),
	}
}
