package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/daemon"
	"mailboxd/internal/operating/runnerdaemon"
	"mailboxd/internal/running/carrier"
)

func runnerCommand(g *globals) *cobra.Command {
	url, credentials := "", ""
	cmd := &cobra.Command{
		Use:   "runner",
		Short: "Run agents for the daemon of another machine",
		Long: `Run the agents of this machine for a daemon elsewhere, until Ctrl-C. The file
~/.config/mailboxd/runner.yaml, or that of --config, has the agents, their commands
and their secrets; they stay here. The daemon decides which tasks run, and gets
their answers. mailboxd-hub enroll makes the key of a runner.

SIGTERM, SIGINT: exit. Runs go on, and the next runner reports them.`,
		Example: `  mailboxd runner --connect tls://hub:4222 --credentials gpu-1.nk
  mailboxd runner --connect nats://127.0.0.1:4222 --config runner.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if url == "" {
				return exit.With(exit.Usage, "name the hub, such as --connect tls://hub:4222")
			}
			cfg, err := config.LoadRunner(g.config)
			if err != nil {
				return err
			}
			opts := runnerdaemon.Options{
				Config: cfg, URL: url, Version: version(), Keeper: []string{"mailboxd", daemon.KeeperName},
				Log: term.NewLogger(cmd.ErrOrStderr(), cfg.Log.Level, cfg.Log.Format),
			}
			ctx := cmd.Context()
			if credentials == "-" {
				ctx, opts.Credentials, err = credentialsFrom(ctx, cmd.InOrStdin())
				opts.Without = withoutHub
			} else if credentials != "" {
				opts.Credentials, err = carrier.ReadCredentials(credentials)
			}
			if err != nil {
				return err
			}
			return runnerdaemon.Serve(ctx, opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&url, "connect", "", "`URL` of the hub")
	flags.StringVar(&credentials, "credentials", "", "`FILE` of the key that mailboxd-hub enroll made; - for standard input, up to a line END")
	return cmd
}

// withoutHub is how long a runner of ssh goes on without the hub. The ssh at the other end has ended by then.
const withoutHub = 20 * time.Second

// mostCredentials limits the lines of credentials on standard input.
const mostCredentials = 1000

// credentialsFrom reads credentials up to a line END. The context ends when the input does, as that of ssh
// does with its connection.
func credentialsFrom(ctx context.Context, in io.Reader) (context.Context, carrier.Credentials, error) {
	type found struct {
		credentials carrier.Credentials
		err         error
	}
	bound, stop := context.WithCancel(ctx)
	read := make(chan found, 1)
	new(sync.WaitGroup).Go(func() { // it ends with the program: a read of standard input can't be ended
		lines := bufio.NewReader(in)
		text, err := untilEnd(lines)
		var c carrier.Credentials
		if err == nil {
			c, err = carrier.ParseCredentials(text)
		}
		read <- found{c, err}
		_, _ = io.Copy(io.Discard, lines)
		stop()
	})
	select {
	case f := <-read:
		return bound, f.credentials, f.err
	case <-ctx.Done():
		return ctx, carrier.Credentials{}, fmt.Errorf("read credentials: %w", ctx.Err())
	}
}

// untilEnd returns the lines before a line END.
func untilEnd(lines *bufio.Reader) ([]byte, error) {
	var text []byte
	for range mostCredentials {
		line, err := lines.ReadString('\n')
		if strings.TrimSpace(line) == "END" {
			return text, nil
		}
		if err != nil {
			break
		}
		text = append(text, line...)
	}
	return nil, errors.New("read credentials: standard input has no line END")
}
