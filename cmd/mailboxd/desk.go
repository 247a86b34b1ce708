package main

import (
	"errors"

	"github.com/spf13/cobra"

	"mailboxd/internal/config"
	"mailboxd/internal/exit"
	"mailboxd/internal/reader"
)

// locationOf returns where the mailbox of a configuration is.
func locationOf(cfg config.Config) reader.Location {
	return reader.Location{Root: cfg.Root, StateDir: cfg.StateDir}
}

// atDesk makes a command of a function that reads.
func atDesk(g *globals, read func(*cobra.Command, []string, *reader.Reader) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := g.load()
		if err != nil {
			return err
		}
		r, err := locationOf(cfg).Open(cmd.Context())
		if errors.Is(err, reader.ErrNoMailbox) && len(args) > 0 {
			return &exit.Error{Code: exit.NoTask, Err: err} // there is no such task
		}
		if err != nil {
			return err
		}
		defer r.Close()
		return read(cmd, args, r)
	}
}
