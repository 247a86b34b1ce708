package acp

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	machine "mailboxd/internal/running/host"
	"mailboxd/internal/sandboxing/sandbox"
)

// Name is the command of a host. No command of the command line has it.
const Name = "acp-host"

// ProtocolVersion is the version of ACP that a host speaks. An agent with another one fails.
const ProtocolVersion = sdk.ProtocolVersionNumber

// Variables of a run: the files through which a host asks, and the tool broker of the run.
const (
	progressVariable = "MAILBOX_PROGRESS_FILE"
	answersVariable  = "MAILBOX_ANSWERS_FILE"
)

// Options are what a host knows of its run.
type Options struct {
	Argv   []string // the agent's command
	Mode   string   // the mode of the session in which the agent asks; "": the host sets none
	Resume string   // the session that the run continues; "": a new one
	Prompt string
	Cwd    string // of the session

	Progress string // the file for calls of tools; "": asked calls are rejected
	Answers  string // the file with the decisions; "": asked calls are rejected

	ToolsURL   string // of the tool broker of the run; "": there is none
	ToolsToken string // the file with its token

	Stdout io.Writer
	Stderr io.Writer

	Patience time.Duration // how long the agent may take to answer initialize; 0: 30 seconds
	Grace    time.Duration // how long it may take to end after its input ended; 0: 5 seconds
}

// Arguments returns the arguments of mailboxd for a host that runs the agent's command argv.
func Arguments(argv []string, mode, resume string) []string {
	args := []string{Name}
	if mode != "" {
		args = append(args, "--mode", mode)
	}
	if resume != "" {
		args = append(args, "--resume", resume)
	}
	return append(append(args, "--"), argv...)
}

// Main is the command of a host: its arguments are those of Arguments after the name, its prompt is
// standard input, and the files are in the environment.
func Main(args []string) error {
	o := Options{
		Progress: os.Getenv(progressVariable), Answers: os.Getenv(answersVariable),
		ToolsURL: os.Getenv(sandbox.ToolsVariable), ToolsToken: os.Getenv(sandbox.ToolsTokenVariable),
		Stdout: os.Stdout, Stderr: os.Stderr,
	}
	flags := flag.NewFlagSet(Name, flag.ContinueOnError)
	flags.StringVar(&o.Mode, "mode", "", "mode of the session")
	flags.StringVar(&o.Resume, "resume", "", "session to continue")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.Argv = flags.Args(); len(o.Argv) == 0 {
		return errors.New(Name + ": no command of an agent")
	}
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		return fmt.Errorf("read prompt: %w", err)
	}
	o.Prompt = string(prompt)
	if o.Cwd, err = os.Getwd(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	machine.UnmapProgram() // a host lives as long as its agent, and needs little of the program
	return Run(ctx, o)
}
