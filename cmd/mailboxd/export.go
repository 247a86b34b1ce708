package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/stores/bundle"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/stores/worktree"
)

func exportCommand(g *globals) *cobra.Command {
	out, redact, asJSON := "", []string(nil), false
	cmd := &cobra.Command{
		Use:   "export RUN -o FILE",
		Short: "Write the evidence of a run into one signed file",
		Long: `Write requests, plans, approvals with their proofs, results, patches, messages and
events of a run into a tar, signed with the key of the mailbox. RUN is a run_id, or
the id of a task in the run; the file has all tasks of the run, with all revisions.
Anybody with the public key checks it with mailboxd verify. With --redact input, the
hashes of requests, plans and messages replace them; with --redact output, those of
results, patches and messages do. Events that may quote them are then hashes, too.`,
		Example: `  mailboxd export run_1 -o run.tar
  mailboxd export fix-login -o fix-login.tar --redact input,output`,
		Args: cobra.ExactArgs(1),
		RunE: withReader(g, func(cmd *cobra.Command, args []string, r *reader.Reader) error {
			if out == "" {
				return exit.With(exit.Usage, "name the file to write: -o FILE")
			}
			done, err := exportRun(g, cmd, r, args[0], redact, out)
			if err != nil {
				return err
			}
			if done.Open > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "%d of %d tasks have not ended; the file has what is known now\n", done.Open, done.Tasks)
			}
			if asJSON {
				return term.PrintJSON(cmd.OutOrStdout(), done)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: run %s, tasks: %d, files: %d, bytes: %d\n",
				term.OneLine(out), term.OneLine(done.Run), done.Tasks, done.Files, done.Bytes)
			return err
		}),
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "`FILE` to write; there must be none of that name")
	cmd.Flags().StringSliceVar(&redact, "redact", nil, "leave out `WHAT`: input, output, or both with a comma between")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// exportRun exports the run with a name, or that of a task with the beginning of its id.
func exportRun(
	g *globals, cmd *cobra.Command, r *reader.Reader, name string, redact []string, out string,
) (done bundle.Exported, err error) {
	none := exit.With(exit.NoTask, "no run or task %q; see: mailboxd ps --all", name)
	if r.State == nil {
		return done, none
	}
	from := bundle.Source{Worktrees: worktree.Store{Records: worktree.RecordsIn(r.State.Path())}}
	if from.Mailbox, err = r.State.ID(); err != nil {
		return done, err
	}
	cfg, err := g.partial(io.Discard) // the reader said what is wrong with it
	if err != nil {
		return done, err
	}
	keys := cfg.Sealing(r.State.Path())
	if from.Signer, err = keys.Signer(); err != nil {
		return done, fmt.Errorf("sign the file: %w", err)
	}
	if from.Keys, err = keys.List(); err != nil {
		return done, err
	}
	if from.Ledger, err = ledger.OpenReader(r.State.LedgerPath()); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = none
		}
		return done, err
	}
	defer func() { err = errors.Join(err, from.Ledger.Close()) }()
	if done, err = bundle.Export(cmd.Context(), from, name, redact, out); !errors.Is(err, ledger.ErrUnknown) {
		return done, err
	}
	id, err := r.Find(cmd.Context(), name)
	if err != nil {
		return done, none
	}
	return bundle.Export(cmd.Context(), from, string(id), redact, out)
}
