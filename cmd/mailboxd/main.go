// Command mailboxd takes the tasks that AINL programs leave in a mailbox,
// runs the agents they are for, and leaves one final result for each. It never
// loses a task and never runs one twice by accident.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/daemon"
	"mailboxd/internal/running/acp"
	"mailboxd/internal/running/broker"
	"mailboxd/internal/running/external"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/breakout"
	"mailboxd/internal/sandboxing/confine"
	"mailboxd/internal/sandboxing/gate"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// steps are processes beside and in a sandbox; no command of the command line has their names.
var steps = map[string]func([]string) error{
	runner.GateName: gate.Run, runner.EnterName: gate.Enter, runner.ConfineName: confine.Become,
	breakout.Name: breakout.Main, breakout.RemountName: breakout.Remount,
	runner.BrokerName: broker.Main, acp.Name: acp.Main, external.Name: external.Main,
	breakout.OwnProcName: breakout.OwnProc, breakout.CapabilitiesName: breakout.GiveCapabilities,
}

// run is the program except for the exit, so that tests can call it.
func run(args []string) int {
	if len(args) == 3 && args[0] == daemon.KeeperName {
		return report(os.Stderr, runKeeper(args[1], args[2])) // before other setup, since a keeper lives long and stays small
	}
	if len(args) > 0 && steps[args[0]] != nil {
		return report(os.Stderr, steps[args[0]](args[1:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends us at once
	cmd := rootCommand()
	cmd.SetArgs(args)
	return report(os.Stderr, cmd.ExecuteContext(ctx))
}

// report prints an error and returns its exit code.
func report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	code := exit.Failed
	if exit, ok := errors.AsType[*exit.Error](err); ok {
		code = exit.Code
	}
	if words := err.Error(); words != "" {
		fmt.Fprintln(w, "mailboxd:", words)
	}
	return code
}

// globals are the flags that every command has.
type globals struct {
	config string
	root   string
	socket string // of approvers, of another user's daemon
	quiet  bool   // the command itself says which mistakes the configuration has
}

func (g *globals) load() (config.Config, error) { return config.Load(g.config, g.root) }

// partial loads what can be read of a configuration with mistakes, and says on w that it has
// some. It suffices to find the mailbox and its daemon.
func (g *globals) partial(w io.Writer) (config.Config, error) {
	cfg, mistakes, err := config.Partial(g.config, g.root)
	if len(mistakes) > 0 && !g.quiet {
		fmt.Fprintf(w, "mailboxd: using the mailbox %s in spite of mistakes in the configuration, such as %s; all of them: mailboxd config check\n",
			term.Escape(cfg.Root), term.Escape(mistakes[0].String()))
	}
	return cfg, err
}

func rootCommand() *cobra.Command {
	g := &globals{}
	cmd := &cobra.Command{
		Use:   "mailboxd",
		Short: "A durable task queue for coding agents and AINL programs",
		Long: `mailboxd is a durable task queue for coding agents and AINL programs. It reads task
lines from a mailbox, runs the agents of your configuration, and writes one result
file for each task, with approvals, budgets and a record of everything.`,
		Example: `  mailboxd demo
  mailboxd init && mailboxd serve
  mailboxd send --agent hello --type greeting --wait`,
		Version:           versionLine(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true}, // we have our own
		Args:              requireCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.PersistentFlags().StringVar(&g.config, "config", "", "configuration file (default: "+cmp.Or(tilde(config.DefaultPath()), "none without $HOME")+")")
	cmd.PersistentFlags().StringVar(&g.root, "root", "", "mailbox directory (default: $AINL_AGENT_ROOT, or root in the configuration)")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.With(exit.Usage, "%w; see %s --help", err, cmd.CommandPath())
	})
	cmd.AddCommand(
		demoCommand(), initCommand(g), serveCommand(g),
		askCommand(g), sendCommand(g), againCommand(g), editCommand(g), waitCommand(g), resultCommand(g),
		psCommand(g), agentsCommand(g), showCommand(g), logsCommand(g), eventsCommand(g), budgetCommand(g), lintCommand(g),
		configCommand(g), gcCommand(g), doctorCommand(g), serviceCommand(g), mcpCommand(g), completionCommand(), manCommand(), versionCommand(),
		demoAgentCommand(),
	)
	cmd.AddCommand(threadCommand(g), traceCommand(g), replyCommand(g), promptCommand(), webCommand(g))
	cmd.AddCommand(approveCommand(g), denyCommand(g), reloadCommand(g))
	cmd.AddCommand(diffCommand(g), applyCommand(g), discardCommand(g), schemaCommand(g), replayCommand(g), routeCommand(g))
	cmd.AddCommand(backupCommand(g), restoreCommand(g), moveCommand(g), statsCommand(g), auditCommand(g), keysCommand(g))
	cmd.AddCommand(exportCommand(g), verifyCommand(), artifactCommand(g), gatewayCommand(g), runnersCommand(g), runnerCommand(g))
	cmd.AddCommand(taskVerbs(g)...)
	cmd.AddCommand(agentVerbs(g)...)
	completeArgs(g, cmd)
	groupCommands(cmd)
	exit.CheckArgs(cmd)
	return cmd
}

// tilde shortens a path below the home directory.
func tilde(path string) string {
	if home, err := os.UserHomeDir(); err == nil && home != "" {
		if rest, ok := strings.CutPrefix(path, home+"/"); ok {
			return "~/" + rest
		}
	}
	return path
}
