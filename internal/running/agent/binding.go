package agent

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/external"
	"mailboxd/internal/running/services"
	"mailboxd/internal/sandboxing/sandbox"
)

// A Binding says how an agent is run. Only the operator's configuration sets it: no
// manifest and no task can introduce a command (AINL-24).
type Binding struct {
	ID       string             // compared byte for byte with target_agent
	Manifest *envelope.Manifest // nil: none

	Dialect    envelope.Dialect    // of its requests and answers; "" is AINL
	Definition *dialect.Definition // its instructions and delegation rules (CAP-01 to CAP-07); nil: none

	Profile    Profile           // default for the next three fields
	Command    []string          // argv: a path or a name on PATH, then arguments, each a template
	Output     Format            // of its answer; "" is Envelope
	Stdin      Stdin             // its input; "" is Request
	Permission Permission        // for the profile's program; "" is what its own settings allow
	Tools      []string          // the most that a task may use, as policy has it; nil: not limited
	Servers    []services.Server // that Tools names, for the tool broker of a run
	Model      string            // for the profile's program; "" is the program's default
	Cwd        string            // "" is the run directory, or a worker's own directory
	Env        []string          // KEY passes a variable on, KEY=VALUE sets it

	// Workdirs are the directories in which a task may have the agent work, also below them.
	Workdirs []string

	Worktree bool     // each run works in a clone of the repository that its directory is part of
	Commits  bool     // the clones are of commits that come with the jobs, at a runner
	Copy     []string // what a clone gets of the working tree; see worktree.Request
	Setup    []string // argv of the command that prepares a clone before Command, without templates; nil: none

	Worker  *Worker       // instead of Command, Output and Stdin: processes for many tasks
	Inbox   *Inbox        // instead of either: tasks are fetched from a file
	Service *task.Service // instead of all: a host asks a service for each task
	Remote  *Remote       // instead of all: a runner on another machine has its command

	Sandbox sandbox.Settings // of each run; the zero value is none

	Timeout     time.Duration // for the whole run; 0: unlimited
	IdleTimeout time.Duration // without output or progress; 0: unlimited
	ExitTimeout time.Duration // from the answer in the result file to the exit; 0: unlimited
	Grace       time.Duration // between SIGTERM and SIGKILL; 0: five seconds
	MaxOutput   int64         // bytes of stdout, of stderr, and of the result file; 0: 64 MiB

	Concurrency    int           // concurrent runs; 0: one
	Retries        int           // further attempts if a run asks for one
	Backoff        time.Duration // before the first retry, and before a failed worker is replaced; doubles; 0: one second
	Idempotent     bool          // a run that died without an answer may be repeated
	Resend         Resend        // "" is Rerun
	AllowUnmetered bool          // accepts tasks with a budget without metering
}

// A Format is the format of an agent's answer.
type Format string

// The formats, beside those of known programs.
const (
	Envelope Format = "envelope" // an AgentTaskResult, or its output; metered
	JSON     Format = "json"     // an object, which becomes the output
	Text     Format = "text"     // text, which becomes the output's summary

	Dispatched Format = "clutch-worker" // an object with taskId, success, output, error and usage
)

var formats = []Format{Envelope, JSON, Text, Claude, Codex, Cursor, Gemini, OpenCode, ACP, Dispatched}

// Formats returns the names of all formats.
func Formats() (names []string) {
	for _, f := range formats {
		names = append(names, string(f))
	}
	return names
}

// Metered reports whether answers state their cost.
func (f Format) Metered() bool {
	return f == Envelope || f == Dispatched || f == Service || eventReaders[f] != nil
}

// Priced reports whether the cost includes money, and not only tokens.
func (f Format) Priced() bool {
	return f == Envelope || f == Dispatched || f == Service || f == Claude || f == OpenCode
}

// Stdin is the standard input of an agent.
type Stdin string

// The kinds of input. Input is always a file: reads don't block, and it has an end.
const (
	Request Stdin = "request" // request.json, the task's exact bytes
	Prompt  Stdin = "prompt"  // prompt.txt, the task as text for a language model
	None    Stdin = "none"

	Dispatch Stdin = "dispatch" // dispatch.json, a task.request of Clutch and its context
	Action   Stdin = "action"   // dispatch.json, the task as the reference of Clutch gives it: {taskId, action, input}, and its context
)

// Resend says what a changed request with the id of a started task means.
type Resend string

// Meanings of a changed request (AINL-55).
const (
	Rerun  Resend = "rerun" // a new revision, which is run
	Refuse Resend = "refuse"
)

func newAgent(b Binding, opts Options) (*Agent, error) {
	b = b.withDefaults()
	if wrong := b.Check(); len(wrong) > 0 {
		return nil, wrong[0]
	}
	g := &Agent{binding: b, opts: opts, workdirs: resolveAll(b.Workdirs)}
	var err error
	if g.command, err = parseCommand(b.Command); err != nil {
		return nil, err
	}
	var env *FieldError
	if g.environ, env = inherit(b.Env, os.LookupEnv); env != nil {
		return nil, env
	}
	g.runArguments = b.terms()
	if b.Worker != nil {
		g.workers, g.compared = g.newPool(), new(gitComparison)
	}
	return g, nil
}

func (b Binding) withDefaults() Binding {
	b = b.Filled()
	b.Command, b.Env, b.Workdirs = slices.Clone(b.Command), slices.Clone(b.Env), slices.Clone(b.Workdirs)
	setDefault(&b.Output, Envelope)
	setDefault(&b.Stdin, Request)
	setDefault(&b.Resend, Rerun)
	if b.Service != nil && b.Service.Mode == task.ServiceA2A {
		setDefault(&b.Grace, external.EndTimeout)
	}
	setDefault(&b.Grace, 5*time.Second)
	setDefault(&b.MaxOutput, 64<<20)
	setDefault(&b.Backoff, time.Second)
	if b.Inbox != nil {
		b.Inbox = b.Inbox.withDefaults()
	}
	if b.Worker != nil {
		b.Worker = b.Worker.withDefaults()
		b.Concurrency = b.Worker.Count * b.Worker.InFlight
	}
	if b.Remote != nil {
		setDefault(&b.Concurrency, math.MaxInt32) // the runners have their own limits
	}
	setDefault(&b.Concurrency, 1)
	return b
}

func setDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// A FieldError is what is wrong with a field of a binding, by its name in the configuration.
type FieldError struct{ Field, Problem string }

// Error returns "field: problem".
func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

func wrong(field, format string, args ...any) *FieldError {
	return &FieldError{field, fmt.Sprintf(format, args...)}
}

// Check returns everything that is wrong with the binding and can be found before a run.
func (b Binding) Check() (found []*FieldError) {
	b = b.withDefaults()
	note := func(errs ...*FieldError) {
		for _, err := range errs {
			if err != nil {
				found = append(found, err)
			}
		}
	}
	if b.ID == "" || strings.ContainsFunc(b.ID, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		note(wrong("id", "must be text without control characters"))
	}
	if b.Manifest != nil && b.Manifest.AgentID != b.ID {
		note(wrong("manifest", "is for the agent %q", b.Manifest.AgentID))
	}
	note(b.checkDialect(), b.checkProfile(), b.checkPermission(), b.checkWorkdirs(), b.checkWorktree())
	switch {
	case b.Remote != nil:
		note(b.checkRemote())
	case b.Inbox != nil:
		note(b.checkInbox())
	case b.Worker != nil:
		note(b.checkWorker())
	case b.Service != nil:
		note(b.checkService())
	case len(b.Command) == 0 || b.Command[0] == "":
		note(wrong("exec.command", "required, a list such as [./agent.sh]; or the agent has a worker, an inbox, http, a2a, mcp or remote"))
	}
	if b.Sandbox.Active() && b.Inbox != nil {
		note(wrong("sandbox", "is for an exec agent or a worker, not for an inbox"))
	}
	note(b.checkWords()...)
	note(b.checkNumbers()...)
	for i, element := range b.Command {
		note(checkElement(fmt.Sprintf("exec.command[%d]", i), element))
	}
	for i, entry := range b.Env {
		err := checkVariable(i, entry)
		if err != nil && b.Worker != nil {
			err.Field = "worker" + strings.TrimPrefix(err.Field, "exec")
		}
		note(err)
	}
	return found
}

// checkWords checks the fields that have one of a few values.
func (b Binding) checkWords() (found []*FieldError) {
	if !slices.Contains(formats, b.Output) && b.Service == nil {
		found = append(found, wrong("exec.output", "%q is not one of %s", b.Output, strings.Join(Formats(), ", ")))
	}
	if !slices.Contains([]Stdin{Request, Prompt, Dispatch, Action, None}, b.Stdin) {
		found = append(found, wrong("exec.stdin", "%q is not one of request, prompt, dispatch, action, none", b.Stdin))
	}
	if b.Resend != Rerun && b.Resend != Refuse {
		found = append(found, wrong("resend", "%q is not one of rerun, refuse", b.Resend))
	}
	return found
}

func (b Binding) checkNumbers() (found []*FieldError) {
	for _, field := range []struct {
		name string
		n    int64
	}{
		{"timeout", int64(b.Timeout)}, {"idle_timeout", int64(b.IdleTimeout)}, {"exit_timeout", int64(b.ExitTimeout)},
		{"grace", int64(b.Grace)}, {"exec.max_output", b.MaxOutput}, {"concurrency", int64(b.Concurrency)},
		{"retries", int64(b.Retries)}, {"backoff", int64(b.Backoff)},
	} {
		if field.n < 0 {
			found = append(found, wrong(field.name, "must not be negative"))
		}
	}
	return found
}
