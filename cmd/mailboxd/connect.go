package main

import (
	"errors"

	"github.com/spf13/cobra"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/operating/config"
)

// locationOf returns where the mailbox of a configuration is.
func locationOf(cfg config.Config) reader.Location {
	return reader.Location{Root: cfg.Root, StateDir: cfg.StateDir}
}

// location returns where a command that may be given a socket asks.
func (g *globals) location(cfg config.Config) reader.Location {
	at := locationOf(cfg)
	at.Socket = g.socket
	return at
}

// addSocket adds the flag of commands that approvers of a group may use.
func (g *globals) addSocket(cmd *cobra.Command) {
	cmd.Flags().StringVar(&g.socket, "socket", "", "approvers' `SOCKET` of another user's daemon")
}

// withReader makes a command of a function that reads.
func withReader(g *globals, read func(*cobra.Command, []string, *reader.Reader) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := g.partial(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		r, err := g.location(cfg).Open(cmd.Context())
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

// withDaemon makes a command of a function that needs the daemon. Its reader asks the
// same daemon.
func withDaemon(g *globals, steer func(*cobra.Command, []string, *reader.Reader, *client.Client) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cfg, err := g.partial(cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		r, daemon, err := g.location(cfg).Connect(cmd.Context())
		if errors.Is(err, reader.ErrNoMailbox) {
			return &exit.Error{Code: exit.Down, Err: err}
		}
		if err == nil {
			defer r.Close()
			err = steer(cmd, args, r, daemon)
		}
		return withExitCode(err)
	}
}

// withExitCode gives an error of the daemon, or of its absence, an exit code.
func withExitCode(err error) error {
	said, ok := errors.AsType[*client.Error](err)
	switch {
	case errors.Is(err, client.ErrDown):
		return exit.With(exit.Down, "%w; start it with: mailboxd serve", err)
	case !ok:
		return err
	case said.Kind == client.NoTask:
		return &exit.Error{Code: exit.NoTask, Err: err}
	case said.Kind == client.Unfinished:
		return &exit.Error{Code: exit.Timeout, Err: err}
	case said.Kind == client.BadRequest:
		return &exit.Error{Code: exit.Usage, Err: err}
	}
	return err
}
