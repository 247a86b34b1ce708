package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/access/client"
	"mailboxd/internal/access/mcpserver"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/config"
	"mailboxd/watcher"
)

func mcpCommand(g *globals) *cobra.Command {
	as := ""
	var install editorFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Let an editor send, watch and answer tasks (MCP)",
		Long: `Serve the Model Context Protocol on standard input and output, for an editor. Each
editor starts its own server; all servers share the mailbox and its daemon.
Sending and reading work without a daemon.

If an agent starts the server during a run, tasks are sent in the name of the
agent.

With --install, enter the server in an editor instead, by the editor's own command
or in its file: claude, codex, gemini, opencode or cursor. The change is shown first.`,
		Example: `  mailboxd mcp --install claude
  mailboxd mcp --remove claude
  mailboxd mcp --as cursor`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if install.given() {
				return install.run(cmd, g)
			}
			cfg, err := g.partial(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			out := os.Stdout
			os.Stdout = os.Stderr // standard output is for the protocol
			return serveMCP(cmd.Context(), g, cfg, as, out)
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "requester_id of sent tasks (default: you)")
	install.add(cmd)
	return cmd
}

func serveMCP(ctx context.Context, g *globals, cfg config.Config, as string, out io.WriteCloser) error {
	root, err := filepath.Abs(cfg.Root)
	if err != nil {
		return err
	}
	opts := mcpserver.Options{
		Requester: cmp.Or(as, loginName()), Version: version(), NearMisses: nearMissesOf(cfg),
		Log: term.NewLogger(os.Stderr, cfg.Log.Level, cfg.Log.Format),
	}
	if task, ok := runTask(os.Getenv("MAILBOX_TASK_FILE")); ok {
		opts.Requester, opts.Parent = task.Agent, task.ID
	}
	box := editorMailbox(cfg, root)
	box.Agents = func() ([]mcpserver.Agent, error) {
		now, err := g.partial(io.Discard) // an editor can outlast configurations
		return agentsFor(opts.Requester, now), err
	}
	return mcpserver.Serve(ctx, mcpserver.Lines(os.Stdin, out), box, opts)
}

// runTask reads the task of the run that this process is part of.
func runTask(path string) (envelope.Task, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return envelope.Task{}, false
	}
	task, _ := dialect.DecodeTask(envelope.MarkedAs(text), text, envelope.Legacy)
	return task, task.ID != "" && task.Agent != ""
}

// editorMailbox opens the mailbox anew for each request, since an editor can outlast
// daemons.
func editorMailbox(cfg config.Config, root string) mcpserver.Mailbox {
	at := locationOf(cfg)
	return mcpserver.Mailbox{
		Root: root,
		Read: func(ctx context.Context, do func(*client.Client) error) error {
			r, err := at.Open(ctx)
			if errors.Is(err, reader.ErrNoMailbox) {
				return do(nil)
			}
			if err != nil {
				return err
			}
			defer r.Close()
			return do(r.Client)
		},
		Send: func(ctx context.Context, line []byte) (func(context.Context) (bool, error), error) {
			s, err := appendTask(ctx, cfg, line, false)
			return func(ctx context.Context) (bool, error) { return s.Taken(ctx, at) }, err
		},
		Watch: func(ctx context.Context, look func()) error {
			return watcher.Watch(ctx, []string{filepath.Join(root, "results")}, time.Second, look)
		},
		Daemon: func(ctx context.Context) (*client.Client, error) {
			_, daemon, err := at.Connect(ctx)
			if errors.Is(err, reader.ErrNoMailbox) {
				err = fmt.Errorf("%w: %w", client.ErrDown, err)
			}
			return daemon, err
		},
	}
}
