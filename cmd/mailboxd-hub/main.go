// Command mailboxd-hub is the server between a mailbox and its runners, the agents on other machines. It carries
// their messages and files, and decides nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"mailboxd/internal/cli/exit"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/operating/hub"
)

// release is set by the linker for a released binary.
var release = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends us at once
	err := command().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "mailboxd-hub:", err)
	code := exit.Failed
	if coded, ok := errors.AsType[*exit.Error](err); ok {
		code = coded.Code
	}
	os.Exit(code)
}

func command() *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use:   "mailboxd-hub",
		Short: "The server between a mailbox and its runners",
		Long: `mailboxd-hub is a NATS server for a mailbox whose agents run on several machines. It
carries messages and files between the owner, which is the daemon of the mailbox, and
the runners. A NATS server of your own, from version 2.12 on, does as well.`,
		Example: `  mailboxd-hub init --listen 0.0.0.0:4222 --host hub.example.com
  mailboxd-hub enroll gpu-1
  mailboxd-hub serve`,
		Version:           fmt.Sprintf("%s %s %s/%s", release, runtime.Version(), runtime.GOOS, runtime.GOARCH),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(*cobra.Command, []string) (err error) {
			if dir == "" {
				dir, err = hub.DefaultDir()
			} else {
				dir, err = filepath.Abs(dir)
			}
			return err
		},
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", "", "`DIRECTORY` of the hub (default ~/.local/share/mailboxd/hub)")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.With(exit.Usage, "%w; see %s --help", err, cmd.CommandPath())
	})
	cmd.AddCommand(initCommand(&dir), enrollCommand(&dir), removeCommand(&dir), serveCommand(&dir))
	exit.CheckArgs(cmd)
	return cmd
}

func initCommand(dir *string) *cobra.Command {
	var plan hub.Plan
	var runners []string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make the directory, the keys and the certificate of a hub",
		Example: `  mailboxd-hub init --listen 0.0.0.0:4222 --host hub.example.com
  mailboxd-hub init --dir ./hub`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range runners { // before anything is made
				if err := hub.CheckName(name); err != nil {
					return err
				}
			}
			plan.Dir = *dir
			made, err := hub.Init(plan)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), initText, term.Escape(*dir), made.URL, plan.Root, term.Escape(made.Credentials))
			for _, name := range runners {
				if err := enroll(cmd, *dir, name); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&plan.Listen, "listen", "127.0.0.1:4222",
		"`ADDRESS` and port; away from the loopback interface the hub has a certificate")
	cmd.Flags().StringSliceVar(&plan.Hosts, "host", nil,
		"`NAME` or address by which owner and runners reach the hub (default the name of this machine); may be repeated")
	cmd.Flags().StringSliceVar(&runners, "enroll", nil, "`NAME` of a runner to enroll, too; may be repeated")
	cmd.Flags().BoolVar(&plan.TLS, "tls", false, "make a certificate for the loopback interface, too")
	cmd.Flags().StringVar(&plan.Root, "root", hub.DefaultRoot, "`NAME` of the mailbox in the subjects of the hub")
	return cmd
}

// initText is what init prints; remote: begins a part of a configuration.
const initText = `The hub is in %s. Start it with mailboxd-hub serve.

For the configuration of the mailbox:

remote: {url: "%s", name: "%s", credentials: "%s"}

On another machine, copy that file of credentials there first, with scp for instance. Runners get
theirs from: mailboxd-hub enroll NAME
`

// runnerCommand is a command about the runner that its argument names.
func runnerCommand(verb, short, then string, do func(cmd *cobra.Command, name string) error) *cobra.Command {
	return &cobra.Command{
		Use:     verb + " NAME",
		Short:   short,
		Long:    short + ". A hub that serves " + then + " within seconds.",
		Example: "  mailboxd-hub " + verb + " gpu-1",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return do(cmd, args[0]) },
	}
}

func enrollCommand(dir *string) *cobra.Command {
	return runnerCommand("enroll", "Make the key of a runner", "lets the runner in",
		func(cmd *cobra.Command, name string) error { return enroll(cmd, *dir, name) })
}

// enroll enrolls a runner, and prints what to copy where.
func enroll(cmd *cobra.Command, dir, name string) error {
	e, err := hub.Enroll(dir, name)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), enrollText, e.Runner, term.Escape(e.Credentials), e.Runner, e.URL)
	return err
}

// enrollText is what enroll prints.
const enrollText = `Runner %s is enrolled. Copy its key to the machine of the runner, and start it there:

  scp %s %s:runner.nk
  mailboxd runner --connect %s --credentials runner.nk

The hub needs the copy here no longer.
`

func removeCommand(dir *string) *cobra.Command {
	return runnerCommand("remove", "Take the access of a runner away", "ends its connection", func(cmd *cobra.Command, name string) error {
		if err := hub.Remove(*dir, name); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "Runner %s has no access any more.\n", name)
		return err
	})
}

func serveCommand(dir *string) *cobra.Command {
	opts, bound, level := hub.Options{}, false, ""
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve the owner and the runners, until Ctrl-C",
		Example: "  mailboxd-hub serve",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			if bound {
				endWithInput(cmd.InOrStdin(), cancel)
			}
			opts.Dir, opts.Log = *dir, term.NewLogger(cmd.ErrOrStderr(), level, "auto")
			opts.Ready = func(url string) { fmt.Fprintf(cmd.OutOrStdout(), "owner and runners reach the hub at %s\n", url) }
			return hub.Serve(ctx, opts)
		},
	}
	cmd.Flags().StringVar(&opts.Listen, "listen", "", "`ADDRESS` and port in place of those of init")
	cmd.Flags().BoolVar(&bound, "until-input-ends", false, "end when standard input ends: when the program that started it has ended")
	cmd.Flags().StringVar(&level, "log-level", "info", "`LEVEL` of the log: debug, info, warn or error")
	return cmd
}

// endWithInput calls cancel when the input ends. Its goroutine may last as long as the process.
func endWithInput(input io.Reader, cancel func()) {
	var reading sync.WaitGroup
	reading.Go(func() {
		_, _ = io.Copy(io.Discard, input)
		cancel()
	})
}
