package agent

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

// A Binding says how an agent is run. It comes from our configuration alone:
// no manifest and no task can introduce a command (AINL-24).
type Binding struct {
	ID       string             // compared byte for byte with target_agent
	Manifest *envelope.Manifest // what it may do; nil: not said

	Dialect    envelope.Dialect    // in which it is asked, and answers; "" is AINL
	Definition *dialect.Definition // what it is told, and whom it may hand work (CAP-01 to CAP-07); nil: not said

	Profile Profile  // fills what is left out of the next three
	Command []string // argv: a path or a name on PATH, then arguments, each a template
	Output  Format   // how its answer is read; "" is Envelope
	Stdin   Stdin    // what it reads; "" is Request
	Model   string   // which one the program of the profile shall ask; "" is as it is set up
	Cwd     string   // "" is the run directory, or one that a worker has for itself
	Env     []string // KEY passes ours on, KEY=VALUE sets

	Worker *Worker // instead of Command, Output and Stdin: processes that take task after task
	Inbox  *Inbox  // instead of either: where somebody fetches its tasks

	Timeout     time.Duration // for the whole run; 0: none
	IdleTimeout time.Duration // without output or progress; 0: none
	ExitTimeout time.Duration // from the answer in its result file to its exit; 0: none
	Grace       time.Duration // between SIGTERM and SIGKILL; 0: five seconds
	MaxOutput   int64         // bytes of stdout, of stderr, and of the result file; 0: 64 MiB

	Concurrency    int           // runs at once; 0: one
	Retries        int           // further attempts when a run asks for one
	Backoff        time.Duration // before the first of them, and before a fruitless worker is replaced; doubles; 0: one second
	Idempotent     bool          // may be run again when a run died without an answer
	Resend         Resend        // "" is Rerun
	AllowUnmetered bool          // takes tasks with a budget although nobody meters it
}

// A Format says how an agent's answer is read.
type Format string

// The formats, beside those of the programs we know.
const (
	Envelope Format = "envelope" // an AgentTaskResult, or its output; metered
	JSON     Format = "json"     // an object, which becomes the output
	Text     Format = "text"     // text, which becomes the output's summary
)

var formats = []Format{Envelope, JSON, Text, Claude, Codex, Cursor, Gemini}

// Metered reports whether answers say what was spent.
func (f Format) Metered() bool { return f == Envelope || hearings[f] != nil }

// Priced reports whether they say so in money, and not in tokens alone.
func (f Format) Priced() bool { return f == Envelope || f == Claude }

// Stdin says what an agent reads on its standard input.
type Stdin string

// What an agent can read. It is always a file: nothing blocks, and it ends.
const (
	Request Stdin = "request" // request.json, the task's exact bytes
	Prompt  Stdin = "prompt"  // prompt.txt, the task as words for a language model
	None    Stdin = "none"    // nothing
)

// Resend says what a changed request under the id of an executed one means.
type Resend string

// What a changed request can mean (AINL-55).
const (
	Rerun  Resend = "rerun"  // the next revision, which is run
	Refuse Resend = "refuse" // a conflict
)

func newAgent(b Binding, opts Options) (*Agent, error) {
	b = b.withDefaults()
	if err := b.check(); err != nil {
		return nil, err
	}
	g := &Agent{binding: b, opts: opts}
	var err error
	if g.command, err = parseCommand(b.Command); err != nil {
		return nil, err
	}
	if g.environ, err = inherit(b.Env, os.LookupEnv); err != nil {
		return nil, err
	}
	g.terms = b.terms()
	if b.Worker != nil {
		g.workers = newPool(b, g.environ, opts)
	}
	return g, nil
}

func (b Binding) withDefaults() Binding {
	b = b.Filled()
	b.Command, b.Env = slices.Clone(b.Command), slices.Clone(b.Env)
	setDefault(&b.Output, Envelope)
	setDefault(&b.Stdin, Request)
	setDefault(&b.Resend, Rerun)
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
	setDefault(&b.Concurrency, 1)
	return b
}

func setDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

func (b Binding) check() error {
	switch {
	case b.ID == "" || strings.ContainsFunc(b.ID, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("id: must be text without control characters")
	case b.Manifest != nil && b.Manifest.AgentID != b.ID:
		return fmt.Errorf("manifest: is for the agent %q", b.Manifest.AgentID)
	case b.checkDialect() != nil:
		return b.checkDialect()
	case b.checkProfile() != nil:
		return b.checkProfile()
	case b.Inbox != nil:
		if err := b.checkInbox(); err != nil {
			return err
		}
	case b.Worker != nil:
		if err := b.checkWorker(); err != nil {
			return err
		}
	case len(b.Command) == 0 || b.Command[0] == "":
		return errors.New("exec.command: required, a list such as [./agent.sh]; or the agent has a worker or an inbox")
	}
	switch {
	case !slices.Contains(formats, b.Output):
		return fmt.Errorf("exec.output: %q is not one of envelope, json, text, claude, codex, cursor, gemini", b.Output)
	case !slices.Contains([]Stdin{Request, Prompt, None}, b.Stdin):
		return fmt.Errorf("exec.stdin: %q is not one of request, prompt, none", b.Stdin)
	case b.Resend != Rerun && b.Resend != Refuse:
		return fmt.Errorf("resend: %q is not one of rerun, refuse", b.Resend)
	}
	for name, n := range map[string]int64{
		"timeout": int64(b.Timeout), "idle_timeout": int64(b.IdleTimeout), "exit_timeout": int64(b.ExitTimeout), "grace": int64(b.Grace),
		"exec.max_output": b.MaxOutput, "concurrency": int64(b.Concurrency), "retries": int64(b.Retries),
		"backoff": int64(b.Backoff),
	} {
		if n < 0 {
			return fmt.Errorf("%s: must not be negative", name)
		}
	}
	return nil
}
