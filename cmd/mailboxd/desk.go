package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/internal/ledger"
	"mailboxd/mailbox"
)

// A desk is where our tools read what the daemon remembers, whether it is
// running or not. It changes nothing.
type desk struct {
	cfg    config
	root   string
	state  *mailbox.State // nil: no daemon has ever served this root
	memory *ledger.Reader // nil with it
}

var errNoMailbox = errors.New("there is no mailbox yet; start one with: mailboxd serve")

// atDesk makes a command of a function that reads.
func atDesk(g *globals, read func(*cobra.Command, []string, *desk) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := g.load()
		if err != nil {
			return err
		}
		desk, err := deskOf(cfg)
		if errors.Is(err, errNoMailbox) && len(args) > 0 {
			return &exitError{exitNoTask, err} // it was asked for a task, and there is none
		}
		if err != nil {
			return err
		}
		defer desk.Close()
		return read(cmd, args, desk)
	}
}

func deskOf(cfg config) (*desk, error) {
	root, err := filepath.EvalSymlinks(cfg.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open %s: %w", cfg.Root, errNoMailbox)
	}
	if err != nil {
		return nil, err
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	dir, err := stateDir(cfg, root)
	if err != nil {
		return nil, err
	}
	d := &desk{cfg: cfg, root: root}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if d.state, err = mailbox.OpenState(dir, root); err != nil {
		return nil, err
	}
	d.memory, err = ledger.OpenReader(d.state.LedgerPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return d, nil
}

func (d *desk) Close() error {
	if d.memory == nil {
		return nil
	}
	return d.memory.Close()
}

// find returns the id that arg names: itself, or the one id it is the
// beginning of.
func (d *desk) find(ctx context.Context, arg string) (envelope.ID, error) {
	if d.memory != nil {
		ids, err := d.memory.Find(ctx, arg)
		switch {
		case err != nil:
			return "", err
		case len(ids) > 0 && string(ids[0]) == arg || len(ids) == 1:
			return ids[0], nil
		case len(ids) > 1:
			return "", exitWith(exitUsage, "%q could be any of %s", arg, list(ids))
		}
	}
	if id, err := envelope.ParseID(arg); err == nil {
		if _, err := mailbox.ReadResult(d.root, id); err == nil {
			return id, nil // its result outlived the ledger
		}
	}
	return "", exitWith(exitNoTask, "no task %q; see: mailboxd ps --all", arg)
}

func list(ids []envelope.ID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = string(id)
	}
	return strings.Join(words, ", ")
}

// latest returns the row of the latest revision of a task.
func (d *desk) latest(ctx context.Context, id envelope.ID) (ledger.Task, error) {
	if d.memory == nil {
		return ledger.Task{}, exitWith(exitNoTask, "no task %q", id)
	}
	revisions, err := d.memory.Revisions(ctx, id)
	if err != nil {
		return ledger.Task{}, err
	}
	if len(revisions) == 0 {
		return ledger.Task{}, exitWith(exitNoTask, "no task %q", id)
	}
	return revisions[len(revisions)-1], nil
}
