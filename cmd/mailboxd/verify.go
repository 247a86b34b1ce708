package main

import (
	"runtime/debug"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/evidence"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/stores/bundle"
)

func verifyCommand() *cobra.Command {
	known, asJSON := evidence.Known{}, false
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
			debug.SetMemoryLimit(bundle.Memory)
			trust, err := known.Trust()
			if err != nil {
				return exit.With(exit.Usage, "%w", err)
			}
			r, err := evidence.Verify(cmd.Context(), args[0], trust)
			if err != nil {
				return exit.With(exit.Usage, "%w", err)
			}
			return evidence.Print(cmd.OutOrStdout(), args[0], r, asJSON)
		},
	}
	cmd.Flags().StringVar(&known.Key, "key", "", "`FILE` with public keys of the mailbox's owner; needed")
	cmd.Flags().StringVar(&known.Approvers, "approvers", "", "`FILE` with names and public keys of approvers")
	cmd.Flags().StringVar(&known.Require, "require", "", "least `PROOF` of each decision: ssh or person")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
