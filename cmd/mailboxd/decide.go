package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/compose"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

func approveCommand(g *globals) *cobra.Command {
	f := &approval{}
	cmd := &cobra.Command{
		Use: "approve ID... | --all", Short: "Approve a task",
		Long: `Approve a task that is held for approval, so that it may start, or the answer of a
task in review, so that it becomes the result. The approval covers what approve and
mailboxd show print. If the request, command, directory, tools or budget change, the
daemon asks again. You decide about a task that you requested as approval.self says:
not at all, confirmed at a terminal, or as about any other. An agent can't approve any
task. If your entry in approvers or policy.proof asks for a proof, your ssh-agent signs
the decision, or the daemon asks at your terminal. With a passkey you decide on the
page: mailboxd web.

At a terminal, approve prints what is asked, and asks you. Elsewhere, name what you
saw with --digest, which show prints, or give --unseen: whatever is asked now is
approved. With --all, approve does so for all tasks that wait for you.

With --socket you decide about tasks of another user's daemon that names you in
approvers: ps and show take the flag, too.`,
		Example: "  mailboxd approve nightly-report --note 'ticket 4711'\n  mailboxd approve nightly-report --digest 1f0d3c5a7b9e2468\n" +
			"  mailboxd approve nightly-report --as sre-oncall@example.com",
		Args: f.checkArgs,
		RunE: withDaemon(g, f.run),
	}
	cmd.Flags().StringVar(&f.word.Note, "note", "", "a note for the record")
	cmd.Flags().StringVar(&f.digest, "digest", "", "the digest that show printed, or at least 16 digits of it; another one is refused with the difference")
	cmd.Flags().BoolVar(&f.word.Unseen, "unseen", false, "approve whatever is asked now, without looking")
	cmd.Flags().BoolVar(&f.all, "all", false, "approve all tasks that wait for you")
	f.add(cmd, g)
	return cmd
}

func denyCommand(g *globals) *cobra.Command {
	f, again := &decideFlags{}, false
	cmd := &cobra.Command{
		Use: "deny ID... --reason WHY", Short: "Deny a task",
		Long: `End a task that is held for approval or in review. The result has the status
rejected, your name and the reason. It does not have the answer of the agent. With
--again, the task is done once more, as a new task of the same requester: its request has
your reason, and its agent goes on in the same worktree.`,
		Example: "  mailboxd deny nightly-report --reason 'not in the freeze'\n  mailboxd deny fix-login --reason 'main.go: keep the old name' --again",
		Args:    cobra.MinimumNArgs(1),
		RunE: withDaemon(g, func(cmd *cobra.Command, args []string, r *reader.Reader, daemon *client.Client) error {
			return forEach(cmd, args, func(arg string) error {
				id, err := f.which.find(cmd.Context(), r, arg)
				if err != nil {
					return err
				}
				f.word.Again = again
				if again && g.socket != "" {
					return exit.With(exit.Usage, "--again: not together with --socket, since the request is sent to the mailbox of its daemon")
				}
				if again {
					details, err := r.Details(cmd.Context(), id)
					if err == nil {
						err = compose.CanRepeat(details)
					}
					if err != nil {
						return err
					}
				}
				word := f.word
				if word.Digest, err = f.chosenCall(cmd.Context(), r, id); err != nil {
					return err
				}
				s, level, err := statement(cmd.Context(), daemon, id, task.Denied, word.As, word.Digest)
				if err != nil {
					return err
				}
				if again && s.Stage == envelope.ApprovalTool {
					return exit.With(exit.Usage, "--again: the task goes on after a call of it is denied")
				}
				word, err = prove(cmd.Context(), s, level, word)
				if err != nil {
					return err
				}
				changed, err := daemon.Deny(cmd.Context(), id, word)
				if err != nil {
					return err
				}
				if err := printChanged(cmd.OutOrStdout(), changed, f.asJSON); err != nil || !again {
					return err
				}
				return sendRound(cmd, g, r, id, f.asJSON)
			})
		}),
	}
	cmd.Flags().StringVar(&f.word.Note, "reason", "", "the reason, for the requester; required")
	cmd.Flags().BoolVar(&again, "again", false, "have the task done once more, with the reason in its request")
	f.add(cmd, g)
	return cmd
}

// sendRound sends another round of a task that was denied.
func sendRound(cmd *cobra.Command, g *globals, r *reader.Reader, id envelope.ID, asJSON bool) error {
	details, err := r.Details(cmd.Context(), id)
	if err != nil {
		return err
	}
	next, err := compose.RoundID(cmd.Context(), r, details)
	if err != nil {
		return err
	}
	request, err := compose.Round(details, next, time.Now())
	if err != nil {
		return err
	}
	_, err = submit(cmd, g, request, asJSON)
	return err
}

// decideFlags are the flags of both decisions.
type decideFlags struct {
	word   client.Decision
	which  chosen
	asJSON bool
	call   int // of those that wait, from 1; 0: the oldest
}

// chosenCall returns the digest of the chosen call; "" for the oldest.
func (f *decideFlags) chosenCall(ctx context.Context, r *reader.Reader, id envelope.ID) (string, error) {
	if f.call == 0 {
		return "", nil
	}
	details, err := r.Details(ctx, id)
	if err != nil {
		return "", err
	}
	calls := (&view.Details{TaskDetails: details}).OpenCalls()
	if f.call < 0 || f.call > len(calls) {
		return "", exit.With(exit.Usage, "--call: %s has %d calls that wait", term.OneLine(string(id)), len(calls))
	}
	return calls[f.call-1].Digest, nil
}

func (f *decideFlags) add(cmd *cobra.Command, g *globals) {
	cmd.Flags().StringVar(&f.word.As, "as", "", "the approver name to use, if you have several")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print each task as one JSON object")
	cmd.Flags().IntVar(&f.call, "call", 0, "which of several calls of a running task; the oldest is 1")
	g.addSocket(cmd)
	f.which.add(cmd)
}

// An approval is a call of the command approve.
type approval struct {
	decideFlags
	digest string // that the person saw, or its beginning
	all    bool
}

func (f *approval) checkArgs(cmd *cobra.Command, args []string) error {
	switch {
	case f.all && len(args) > 0:
		return exit.With(exit.Usage, "--all: takes no ID")
	case f.digest != "" && (f.all || len(args) > 1):
		return exit.With(exit.Usage, "--digest: is of one task; name one ID")
	case f.digest != "" && f.word.Unseen:
		return exit.With(exit.Usage, "--unseen: not together with --digest")
	case f.digest != "" && len(f.digest) < task.ShortDigest:
		return exit.With(exit.Usage, "--digest: needs at least %d of the 64 digits of a digest", task.ShortDigest)
	case f.all:
		return nil
	}
	return cobra.MinimumNArgs(1)(cmd, args)
}

func (f *approval) run(cmd *cobra.Command, args []string, r *reader.Reader, daemon *client.Client) error {
	if f.all {
		return f.approveAll(cmd, r, daemon)
	}
	return forEach(cmd, args, func(arg string) error {
		id, err := f.which.find(cmd.Context(), r, arg)
		if err != nil {
			return err
		}
		return f.approve(cmd, r, daemon, id)
	})
}

// approve approves what the person saw of one task, or sees now.
func (f *approval) approve(cmd *cobra.Command, r *reader.Reader, daemon *client.Client, id envelope.ID) error {
	ctx := cmd.Context()
	chosen, err := f.chosenCall(ctx, r, id)
	if err != nil {
		return err
	}
	s, level, err := statement(ctx, daemon, id, task.Approved, f.word.As, chosen)
	if err != nil {
		return err
	}
	word := f.word
	word.Digest = chosen
	switch {
	case word.Unseen:
	case f.digest != "":
		word.Digest = f.digest
		if strings.HasPrefix(s.Digest, f.digest) {
			word.Digest = s.Digest
		}
	case level == task.ProofTerminal: // the daemon shows it at the terminal
	case term.Interactive():
		if word.Digest, word.Patch, err = f.confirm(ctx, r, id, chosen); err != nil {
			return err
		}
	case level == task.ProofNone:
		return unseen(id)
	default:
		word.Digest = s.Digest // which is signed
	}
	return f.send(cmd, daemon, id, s, level, word)
}

// send proves an approval, and sends it.
func (f *approval) send(cmd *cobra.Command, daemon *client.Client, id envelope.ID, s client.Statement, level task.ProofLevel, word client.Decision) error {
	var err error
	if word.Digest == "" || word.Digest == s.Digest { // about another question nothing is signed; the daemon says what has changed
		if word, err = prove(cmd.Context(), s, level, word); err != nil {
			return err
		}
	}
	changed, err := daemon.Approve(cmd.Context(), id, word)
	if err != nil {
		return err
	}
	return printChanged(cmd.OutOrStdout(), changed, f.asJSON)
}

// unseen says that an approval isn't bound to content.
func unseen(id envelope.ID) error {
	return exit.With(exit.Usage, "approve %s: no terminal shows what you approve: add --digest, with the digest that %s prints, or --unseen",
		term.OneLine(string(id)), view.Command("show", id))
}

// confirm shows what is asked about a task at the terminal, and returns its digest and that of the
// patch, if the person agrees.
func (f *approval) confirm(ctx context.Context, r *reader.Reader, id envelope.ID, chosen string) (digest, patch string, err error) {
	details, err := r.Details(ctx, id)
	if err != nil {
		return "", "", err
	}
	content, asked := (&view.Details{TaskDetails: details, Chosen: chosen}).AskedContent()
	if asked.Asked.IsZero() {
		return "", "", fmt.Errorf("approve %s: nothing is asked about it any more", term.OneLine(string(id)))
	}
	what := "the start"
	switch asked.Stage {
	case envelope.ApprovalPost:
		what, patch = "the answer", details.PatchShown()
	case envelope.ApprovalTool:
		what = "this call"
	}
	agreed, err := term.Confirm(ctx, fmt.Sprintf("%s\nApprove %s of %s?", content, what, term.OneLine(string(id))))
	if err == nil && !agreed {
		err = fmt.Errorf("%s: not approved", term.OneLine(string(id)))
	}
	return asked.Digest, patch, err
}

// statement returns what is signed to decide about a task, and the least proof that is needed. seen is
// the digest of the question; "" for the one that is open.
func statement(
	ctx context.Context, daemon *client.Client, id envelope.ID, decision task.Decision, as, seen string,
) (client.Statement, task.ProofLevel, error) {
	s, err := daemon.Statement(ctx, id, string(decision), as, seen)
	if err != nil {
		return s, task.ProofNone, err
	}
	if s.Task != id || s.Decision != string(decision) {
		return s, task.ProofNone, fmt.Errorf("the daemon asks to sign a decision about %s, not about %s", s.Task, id)
	}
	level, err := task.ParseProofLevel(s.Needs)
	return s, level, err
}

// prove adds the proof that a decision needs: a signature by the ssh-agent, or that the daemon
// asks at the terminal.
func prove(ctx context.Context, s client.Statement, level task.ProofLevel, word client.Decision) (client.Decision, error) {
	var err error
	switch {
	case level == task.ProofTerminal:
		word.Terminal = true
	case level > task.ProofTerminal:
		word.Proof, err = reader.Sign(ctx, s)
	}
	return word, err
}
