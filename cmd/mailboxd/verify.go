package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"mailboxd/internal/access/proof"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/operating/sealing"
	"mailboxd/internal/stores/bundle"
)

// verifyMemory is the memory of the Go runtime that verify keeps to: the file may be hostile.
const verifyMemory = 24 << 20

// verifyFlags are what a person who verifies knows of the owner of a mailbox.
type verifyFlags struct {
	key, approvers, require string
	json                    bool
}

func verifyCommand() *cobra.Command {
	f := verifyFlags{}
	cmd := &cobra.Command{
		Use:   "verify FILE --key PUB",
		Short: "Check the evidence of a run, without a daemon",
		Long: `Check each claim of a bundle that mailboxd export wrote, and print one line for each:
ok, bad or not checked. It needs no daemon, mailbox, configuration or network. PUB has
public keys of the owner, as mailboxd keys export prints them. The lines of the file
of approvers are a name and a public key, as in a file of allowed signers of
ssh-keygen, or a name and a passkey. With --require, each decision in the bundle has
to be verified with at least this proof, and there has to be one. The exit code is 1
if a claim is bad, and 2 if the file is no bundle.`,
		Example: `  mailboxd verify run.tar --key owner.pub
  mailboxd verify run.tar --key owner.pub --approvers approvers --require ssh
  mailboxd verify run.tar --key owner.pub --json | jq '.claims[].status'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			debug.SetMemoryLimit(verifyMemory)
			trust, err := f.trust()
			if err != nil {
				return exit.With(exit.Usage, "%w", err)
			}
			r, err := verifyFile(cmd, args[0], trust)
			if err != nil {
				return err
			}
			return f.print(cmd, args[0], r)
		},
	}
	cmd.Flags().StringVar(&f.key, "key", "", "`FILE` with public keys of the mailbox's owner; needed")
	cmd.Flags().StringVar(&f.approvers, "approvers", "", "`FILE` with names and public keys of approvers")
	cmd.Flags().StringVar(&f.require, "require", "", "least `PROOF` of each decision: ssh or person")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

// trust reads what the flags name.
func (f verifyFlags) trust() (t bundle.Trust, err error) {
	if f.key == "" {
		return t, errors.New("name the public key of the mailbox's owner: --key FILE")
	}
	if t.Keys, err = sealing.ReadKeys(f.key); err != nil {
		return t, err
	}
	if f.approvers != "" {
		text, err := os.ReadFile(f.approvers)
		if err != nil {
			return t, fmt.Errorf("read approvers: %w", err)
		}
		if t.Approvers, err = proof.ParseAllowed(string(text)); err != nil {
			return t, fmt.Errorf("read approvers %s: %w", f.approvers, err)
		}
	}
	if f.require == "" {
		return t, nil
	}
	if t.Require, err = task.ParseProofLevel(f.require); err != nil || t.Require < task.ProofKey {
		return t, fmt.Errorf("--require %q is not ssh or person", f.require)
	}
	return t, nil
}

// verifyFile verifies a regular file.
func verifyFile(cmd *cobra.Command, path string, trust bundle.Trust) (bundle.Report, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return bundle.Report{}, exit.With(exit.Usage, "verify: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		return bundle.Report{}, exit.With(exit.Usage, "%s %w: %w", path, bundle.ErrNoBundle, err)
	}
	r, err := bundle.Verify(cmd.Context(), file, info.Size(), trust)
	if err != nil {
		return r, exit.With(exit.Usage, "%s %w", path, err)
	}
	return r, nil
}

// print prints the claims, and returns an error if one is bad.
func (f verifyFlags) print(cmd *cobra.Command, path string, r bundle.Report) error {
	w, bad := cmd.OutOrStdout(), 0
	for _, c := range r.Claims {
		if c.Status == bundle.Bad {
			bad++
		}
		about := c.What
		if c.Task != "" {
			about += " of " + c.Task
		}
		if f.json {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-11s  %s: %s\n", c.Status, term.OneLine(about), term.OneLine(c.Text)); err != nil {
			return err
		}
	}
	if f.json {
		if err := term.PrintJSON(w, r); err != nil {
			return err
		}
	}
	if bad > 0 {
		return exit.With(exit.Failed, "%d of %d claims of %s are bad", bad, len(r.Claims), path)
	}
	return nil
}
