// Package evidence verifies bundles for people: it reads what they trust, and prints each claim.
package evidence

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"mailboxd/internal/access/proof"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/bundle"
	"mailboxd/internal/stores/seal"
)

// Known is what a person who verifies knows of the owner of a mailbox.
type Known struct {
	Key       string // a file with public keys of the owner
	Approvers string // a file with the names and the public keys of approvers; "" for none
	Require   string // the least proof of each decision; "" for none
}

// Trust reads the files.
func (k Known) Trust() (t bundle.Trust, err error) {
	if k.Key == "" {
		return t, errors.New("name the public key of the mailbox's owner: --key FILE")
	}
	text, err := os.ReadFile(k.Key)
	if err != nil {
		return t, fmt.Errorf("read key: %w", err)
	}
	if t.Keys, err = seal.ParseKeys(text); err != nil {
		return t, fmt.Errorf("read key %s: %w", k.Key, err)
	}
	if k.Approvers != "" {
		text, err := os.ReadFile(k.Approvers)
		if err != nil {
			return t, fmt.Errorf("read approvers: %w", err)
		}
		if t.Approvers, err = proof.ParseAllowed(string(text)); err != nil {
			return t, fmt.Errorf("read approvers %s: %w", k.Approvers, err)
		}
	}
	if k.Require == "" {
		return t, nil
	}
	if t.Require, err = task.ParseProofLevel(k.Require); err != nil || t.Require < task.ProofKey {
		return t, fmt.Errorf("--require %q is not ssh or person", k.Require)
	}
	return t, nil
}

// Verify verifies the bundle at a path. Its error wraps bundle.ErrNoBundle if there is no bundle.
func Verify(ctx context.Context, path string, trust bundle.Trust) (bundle.Report, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return bundle.Report{}, fmt.Errorf("%s %w: %w", path, bundle.ErrNoBundle, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		return bundle.Report{}, fmt.Errorf("%s %w: %w", path, bundle.ErrNoBundle, err)
	}
	r, err := bundle.Verify(ctx, file, info.Size(), trust)
	if err != nil {
		return r, fmt.Errorf("%s %w", path, err)
	}
	return r, nil
}

// Print prints a line for each claim of a bundle, and returns an error if one is bad.
func Print(w io.Writer, path string, r bundle.Report, asJSON bool) error {
	var err error
	if asJSON {
		err = term.PrintJSON(w, r)
	} else {
		err = printClaims(w, r.Claims)
	}
	if err != nil || r.OK {
		return err
	}
	bad := 0
	for _, c := range r.Claims {
		if c.Status == bundle.Bad {
			bad++
		}
	}
	return exit.With(exit.Failed, "%d of %d claims of %s are bad", bad, len(r.Claims), path)
}

func printClaims(w io.Writer, claims []bundle.Claim) error {
	for _, c := range claims {
		about := c.What
		if c.Task != "" {
			about += " of " + c.Task
		}
		if _, err := fmt.Fprintf(w, "%-11s  %s: %s\n", c.Status, term.OneLine(about), term.OneLine(c.Text)); err != nil {
			return err
		}
	}
	return nil
}
