package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/backup"
	"mailboxd/internal/operating/sealing"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/stores/seal"
)

func auditCommand(g *globals) *cobra.Command {
	asJSON, keyFile, anchor := false, "", ""
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Compare the events of the ledger with their seals",
		Long: `Compare all events of the ledger with their signed seals, and list the ranges that
are sealed, removed by retention, or not sealed yet. The exit code is 1 if an event
was changed, added or removed. It reads the ledger, with a daemon or without one.`,
		Example: `  mailboxd audit
  mailboxd audit --key owner.pub --anchor /media/usb/anchor.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, at, err := located(g, cmd)
			if err != nil {
				return err
			}
			var keys seal.Keys
			if keyFile != "" {
				if keys, err = sealing.ReadKeys(keyFile); err != nil {
					return err
				}
			}
			r, err := openLedger(cmd, at)
			if err != nil {
				return err
			}
			defer func() { _ = r.Close() }()
			a, err := cfg.Sealing(at.State).Check(cmd.Context(), r, keys, anchor)
			if err != nil {
				return err
			}
			if asJSON {
				err = term.PrintJSON(cmd.OutOrStdout(), a)
			} else {
				err = a.Print(cmd.OutOrStdout())
			}
			if err == nil && a.Difference != nil {
				err = &exit.Error{Code: exit.Failed}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().StringVar(&keyFile, "key", "", "file with the public keys to trust (default: those of the state directory)")
	cmd.Flags().StringVar(&anchor, "anchor", "", "file with the seals that an anchor got (default: audit.anchor.file)")
	return cmd
}

// openLedger opens the ledger of a mailbox for reading, or an empty one if there is none.
func openLedger(cmd *cobra.Command, at backup.Location) (*ledger.Reader, error) {
	r, err := ledger.OpenReader(at.Ledger())
	if errors.Is(err, fs.ErrNotExist) {
		return ledger.NoLedger(cmd.Context())
	}
	return r, err
}

func keysCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "List, export and replace the keys that seal events",
		Long: `List, export and replace the keys that sign the seals of events. Others verify what
you export with mailboxd, audit a copy of the ledger, or verify messages of mailboxd
to senders with keys, with the public keys.`,
		Example: "  mailboxd keys export > owner.pub",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(keysListCommand(g), keysExportCommand(g), keysRotateCommand(g))
	return cmd
}

func keysListCommand(g *globals) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the keys, the first one first",
		Long:    "List the keys that signed seals, the first one first, with what signed each of them.",
		Example: "  mailboxd keys list",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, at, err := located(g, cmd)
			if err != nil {
				return err
			}
			list, err := cfg.Sealing(at.State).List()
			if err != nil {
				return err
			}
			if !asJSON {
				return cfg.Sealing(at.State).PrintKeys(cmd.OutOrStdout())
			}
			for _, key := range list {
				if err := term.PrintJSON(cmd.OutOrStdout(), key); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return cmd
}

func keysExportCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:     "export",
		Short:   "Print the public keys",
		Long:    "Print the public keys in PEM, those that were replaced included. They are no secret.",
		Example: "  mailboxd keys export > owner.pub",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, at, err := located(g, cmd)
			if err != nil {
				return err
			}
			text, err := cfg.Sealing(at.State).Export()
			if err == nil {
				_, err = cmd.OutOrStdout().Write(text)
			}
			return err
		},
	}
}

func keysRotateCommand(g *globals) *cobra.Command {
	to, lost := "", false
	cmd := &cobra.Command{
		Use:   "rotate",
		Short: "Make a new key, which the old one signs",
		Long: `Make a new key that signs from now on, and have the old one sign it, so that who
trusts the old key trusts the new one. A daemon that is running uses it at once. With
--lost, the old key signs nothing: give the new public key to those who verify.`,
		Example: `  mailboxd keys rotate
  mailboxd keys rotate --to token.pub    # and then set seal.command`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, at, err := located(g, cmd)
			if err != nil {
				return err
			}
			next, err := cfg.Sealing(at.State).Rotate(to, lost)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "made key %s\n", next.Key)
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "file with the public key of the next seal.command")
	cmd.Flags().BoolVar(&lost, "lost", false, "the old key is lost, so it can't sign the new one")
	return cmd
}
