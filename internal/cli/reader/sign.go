package reader

import (
	"context"
	"fmt"
	"os"

	"mailboxd/internal/access/client"
	"mailboxd/internal/access/proof"
	"mailboxd/internal/decisions/task"
)

// Sign has the user's ssh-agent sign a statement with a key of the approver.
func Sign(ctx context.Context, s client.Statement) (*client.Signature, error) {
	if len(s.Keys) == 0 && len(s.Passkeys) > 0 {
		return nil, fmt.Errorf("%s decides with a passkey, on the page: mailboxd web", s.Approver)
	}
	signed, err := proof.SignByAgent(ctx, os.Getenv("SSH_AUTH_SOCK"), s.Keys, StatementOf(s))
	if err != nil {
		return nil, fmt.Errorf("sign the decision of %s: %w", s.Approver, err)
	}
	return &client.Signature{Expires: s.Expires, Signature: string(signed)}, nil
}

// StatementOf returns what is signed for a statement of the daemon.
func StatementOf(s client.Statement) proof.Statement {
	return proof.Statement{
		Mailbox: s.Mailbox, Task: s.Task, Revision: s.Revision, Stage: s.Stage, Decision: task.Decision(s.Decision),
		Digest: s.Digest, Asked: s.Asked, Expires: s.Expires,
	}
}
