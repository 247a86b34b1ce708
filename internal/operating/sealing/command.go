package sealing

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"mailboxd/internal/stores/seal"
)

// patience is how long a command may take. The ledger waits for it.
const patience = 10 * time.Second

// A command signs with seal.command.
type command struct {
	line   []string
	public ed25519.PublicKey
}

// Key returns the id of the key of the command.
func (c command) Key() string { return seal.KeyID(c.public) }

// Sign gives a text to the command, and returns its signature: 64 bytes, or base64 of them.
func (c command) Sign(text []byte) ([]byte, error) {
	out, err := runWith(context.Background(), c.line, text)
	if err != nil {
		return nil, fmt.Errorf("sign with seal.command: %w", err)
	}
	signature := out
	if len(out) != ed25519.SignatureSize {
		signature, _ = base64.StdEncoding.DecodeString(string(bytes.TrimSpace(out)))
	}
	if !ed25519.Verify(c.public, text, signature) {
		return nil, errors.New("sign with seal.command: its output is no signature of its input with the key of seal.public_key")
	}
	return signature, nil
}

// runWith runs a command with a standard input, and returns its output.
func runWith(ctx context.Context, line []string, input []byte) ([]byte, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Stdin = bytes.NewReader(input)
	cmd.WaitDelay = time.Second // a program that leaves its output open to another one
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", line[0], err)
	}
	return out, nil
}
