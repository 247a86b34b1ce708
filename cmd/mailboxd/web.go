package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"mailboxd/internal/access/web"
	"mailboxd/internal/cli/demo"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/daemon"
)

func webCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use:   "web",
		Short: "Show the mailbox in your browser",
		Long: `Serve a page about the mailbox to your browser, until Ctrl-C: what waits for you, what
runs, each task with its output and its history, agents, budgets and events. The
command prints a link at its terminal, which works once. Press Enter for another one.

The page is only for your browser. It opens a port of the loopback interface, and
refuses other users, agents and what they start, and other pages. You can approve on
the page; the decision counts when you type its number at this terminal.`,
		Example: "  mailboxd web",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := g.partial(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return withExitCode(web.Serve(cmd.Context(), pageOf(g, cfg)))
		},
	}
}

// demoPage serves the demo below dir to the browser, until ctx ends.
func demoPage(ctx context.Context, w io.Writer, dir string) error {
	t, err := web.OpenTerminal()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	path, err := demo.Write(dir, self)
	if err != nil {
		return err
	}
	cfg, err := config.Load(path, "")
	if err != nil {
		return err
	}
	if err := demo.Begin(cfg.Root); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var work errgroup.Group
	work.Go(func() error {
		log := zerolog.New(zerolog.ConsoleWriter{Out: w, PartsExclude: []string{"time"}}).Level(zerolog.ErrorLevel)
		defer stop()
		return daemon.Serve(ctx, cfg, daemon.Options{Version: version(), ConfigPath: path, Ephemeral: true}, term.Console{Log: log})
	})
	work.Go(func() error { return demo.Go(ctx, cfg.Root, demoPause) })
	work.Go(func() error {
		defer stop()
		page := pageOf(&globals{config: path}, cfg)
		page.Terminal = t
		if err := locationOf(cfg).AwaitDaemon(ctx); err != nil {
			return err
		}
		return web.Serve(ctx, page)
	})
	return work.Wait()
}

const demoPause = 7 * time.Second // between two tasks of the demo

// pageOf returns the options of the page of a configuration.
func pageOf(g *globals, cfg config.Config) web.Options {
	return web.Options{
		Location: locationOf(cfg), Version: version(), Approve: cfg.Web.Approve != "off", User: "user", StopsAgents: cfg.StopAgentsOnExit,
		Run: func(ctx context.Context, input string, args ...string) (string, error) {
			cmd, out := rootCommand(), &strings.Builder{}
			cmd.SetIn(strings.NewReader(input))
			cmd.SetOut(out)
			cmd.SetErr(io.Discard)
			cmd.SetArgs(slices.Concat([]string{"--config=" + g.config, "--root=" + g.root}, args))
			err := cmd.ExecuteContext(ctx)
			return out.String(), err
		},
		Agents: func(ctx context.Context) ([]view.Agent, error) {
			if edited, err := g.partial(io.Discard); err == nil {
				return agentViews(ctx, edited)
			}
			return agentViews(ctx, cfg)
		},
	}
}
