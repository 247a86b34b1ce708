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
	"mailboxd/internal/api"
	"mailboxd/internal/client"
	"mailboxd/internal/config"
	"mailboxd/internal/exit"
	"mailboxd/internal/ledger"
	"mailboxd/mailbox"
)

// A desk is where our tools read what the daemon remembers, whether it is
// running or not. It changes nothing.
type desk struct {
	cfg   config.Config
	root  string
	state *mailbox.State // for where things lie; nil: no daemon has ever served this root
	books books          // nil with it
	close func() error   // what answers

	served bool // a daemon lives, also when it has no place for us just now
}

// books are what can be read of a mailbox: the daemon tells it, or the ledger
// itself while there is none. Beside a daemon nobody should have the ledger open:
// that keeps its log from being folded into the file.
type books interface {
	Find(ctx context.Context, prefix string) ([]envelope.ID, error)
	Tasks(ctx context.Context, f client.Filter) ([]client.Task, error)
	Count(ctx context.Context, f client.Filter) (int, error)
	Latest(ctx context.Context, id envelope.ID) (client.Task, error)
	CaseFile(ctx context.Context, id envelope.ID) (client.CaseFile, error)
	Events(ctx context.Context, id envelope.ID, after int64, limit int) ([]client.Event, error)
	Files(ctx context.Context) ([]client.Cursor, error)
	Paused(ctx context.Context) ([]string, error)
	Balances(ctx context.Context, day string) ([]client.Balance, error)
	Thread(ctx context.Context, id string) (client.Dialogue, error)
	Trace(ctx context.Context, id string) (client.Dialogue, error)
}

var errNoMailbox = errors.New("there is no mailbox yet; start one with: mailboxd serve")

// atDesk makes a command of a function that reads.
func atDesk(g *globals, read func(*cobra.Command, []string, *desk) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := g.load()
		if err != nil {
			return err
		}
		desk, err := deskOf(cmd.Context(), cfg)
		if errors.Is(err, errNoMailbox) && len(args) > 0 {
			return &exit.Error{Code: exit.NoTask, Err: err} // it was asked for a task, and there is none
		}
		if err != nil {
			return err
		}
		defer desk.Close()
		return read(cmd, args, desk)
	}
}

func deskOf(ctx context.Context, cfg config.Config) (*desk, error) {
	d, stateDir, err := emptyDesk(cfg)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(stateDir); errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if d.state, err = mailbox.OpenState(stateDir, d.root); err != nil {
		return nil, err
	}
	daemon, err := d.daemon(ctx, stateDir)
	d.served = err == nil || isBusy(err)
	switch {
	case err == nil:
		d.books, d.close = daemon, daemon.Close
	case errors.Is(err, client.ErrDown), isBusy(err):
		err = d.openLedger()
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// isBusy reports whether an error says that the daemon has no place for us.
func isBusy(err error) bool {
	said, ok := errors.AsType[*client.Error](err)
	return ok && said.Kind == client.Busy
}

// openLedger has the desk read the ledger itself. There may be none yet.
func (d *desk) openLedger() error {
	memory, err := ledger.OpenReader(d.state.LedgerPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	d.books, d.close = &api.Books{Root: d.root, State: d.state, Memory: memory}, memory.Close
	return nil
}

// emptyDesk knows where everything is, and has nothing open.
func emptyDesk(cfg config.Config) (d *desk, state string, err error) {
	root, err := filepath.EvalSymlinks(cfg.Root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("open %s: %w", cfg.Root, errNoMailbox)
	}
	if err != nil {
		return nil, "", err
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, "", err
	}
	state, err = cfg.StateDirOf(root)
	return &desk{cfg: cfg, root: root}, state, err
}

// daemon reaches the daemon of the mailbox. When there is none, the error wraps
// client.ErrDown.
func (d *desk) daemon(ctx context.Context, stateDir string) (*client.Client, error) {
	places, err := socketPlaces(d.root, stateDir)
	if err != nil {
		return nil, err
	}
	return client.Open(ctx, places...)
}

func (d *desk) Close() (err error) {
	if d.close != nil {
		err = d.close()
	}
	if d.state != nil {
		err = errors.Join(err, d.state.Close())
	}
	return err
}

// find returns the id that arg names: itself, or the one id it is the
// beginning of.
func (d *desk) find(ctx context.Context, arg string) (envelope.ID, error) {
	if d.books != nil {
		ids, err := d.books.Find(ctx, arg)
		switch {
		case err != nil:
			return "", err
		case len(ids) > 0 && string(ids[0]) == arg || len(ids) == 1:
			return ids[0], nil
		case len(ids) > 1:
			return "", exit.With(exit.Usage, "%q could be any of %s", arg, list(ids))
		}
	}
	if id, err := envelope.ParseID(arg); err == nil {
		if _, err := mailbox.ReadResult(d.root, id); err == nil {
			return id, nil // its result outlived the ledger
		}
	}
	return "", exit.With(exit.NoTask, "no task %q; see: mailboxd ps --all", arg)
}

func list(ids []envelope.ID) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = string(id)
	}
	return strings.Join(words, ", ")
}

// latest returns the latest revision of a task.
func (d *desk) latest(ctx context.Context, id envelope.ID) (client.Task, error) {
	if d.books == nil {
		return client.Task{}, exit.With(exit.NoTask, "no task %q", id)
	}
	task, err := d.books.Latest(ctx, id)
	if noTask(err) {
		return client.Task{}, exit.With(exit.NoTask, "no task %q", id)
	}
	return task, err
}

// noTask reports whether an error says that the ledger has no such task.
func noTask(err error) bool {
	said, ok := errors.AsType[*client.Error](err)
	return errors.Is(err, ledger.ErrUnknown) || ok && said.Kind == client.NoTask
}
