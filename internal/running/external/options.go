package external

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/decisions/task"
	machine "mailboxd/internal/running/host"
	"mailboxd/internal/running/runner"
)

// Name is the command of a host. No command of the command line has it.
const Name = "external-host"

// Variables of a run that a host reads.
const (
	runVariable      = "MAILBOX_RUN_ID"
	progressVariable = "MAILBOX_PROGRESS_FILE"
)

// Options are what a host knows of its run.
type Options struct {
	Service task.Service
	Request []byte   // the AgentTaskRequest
	Dir     string   // the run directory, for the record
	RunID   string   // the key of the request, unless the record has an earlier one
	Bearer  string   // the token; "": none
	Env     []string // of the host, for a server that is its child

	Progress string // the file for progress; "": none
	Stdout   io.Writer
	Stderr   io.Writer

	Resolver *net.Resolver  // nil: the one of the machine
	Roots    *x509.CertPool // nil: those of the machine
}

// Arguments returns the arguments of mailboxd for the host of a service. They have no secret.
func Arguments(s task.Service) ([]string, error) {
	text, err := json.Marshal(s)
	return []string{Name, string(text)}, err
}

// Main is the command of a host: its argument is that of Arguments after the name, the request is
// standard input, and the token is in the environment. With --conformance it tries the server at an
// address instead.
func Main(args []string) error {
	if len(args) > 0 && args[0] == conformanceFlag {
		return conform(args[1:])
	}
	o := Options{
		Dir: os.Getenv(runner.DirVariable), RunID: os.Getenv(runVariable), Progress: os.Getenv(progressVariable), Env: os.Environ(),
		Stdout: os.Stdout, Stderr: os.Stderr,
	}
	if len(args) != 1 || o.Dir == "" || o.RunID == "" {
		return errors.New(Name + ": mailboxd starts it for a run")
	}
	if err := json.Unmarshal([]byte(args[0]), &o.Service); err != nil {
		return fmt.Errorf("read the service: %w", err)
	}
	o.Bearer = os.Getenv(o.Service.BearerEnv)
	var err error
	if o.Request, err = io.ReadAll(os.Stdin); err != nil {
		return fmt.Errorf("read request: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	machine.UnmapProgram() // a host lives as long as its service works, and needs little of the program
	return Run(ctx, o)
}
