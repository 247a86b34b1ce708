package agent

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
)

// Files of a run directory, besides the runner's.
const (
	requestFile  = "request.json"   // the request; exact bytes in the agent's dialect, but for the directory in a worktree
	promptFile   = "prompt.txt"     // the task as text, if stdin is Prompt
	dispatchFile = "dispatch.json"  // the task and its context, if stdin is Dispatch or Action
	resultFile   = "result.json"    // the agent's answer, if it writes one
	progressFile = "progress.jsonl" // the agent's progress, if it reports any
)

// facts are the values for a command's templates and the MAILBOX_ variables. They contain
// no free text of the requester, and no bare task id: nothing in a request can become an
// option or a command.
type facts struct {
	TaskFile         string
	ResultFile       string
	ProgressFile     string
	ConversationFile string // "" if there is none, as SystemFile
	SystemFile       string
	RunDir           string
	RunID            string
	Attempt          int
	Deadline         string // RFC 3339; "" if there is none
	AllowedTools     string // separated by commas; "" also without a restriction
	ToolsRestricted  bool   // to AllowedTools; false: tools aren't restricted
	BudgetTokens     string // a number; "" if there is no limit
	BudgetUSDCents   string
}

func newFacts(j task.Job) facts {
	work := workDir(j.Dir)
	f := facts{
		TaskFile:        inDir(j, requestFile),
		ResultFile:      filepath.Join(work, resultFile),
		ProgressFile:    filepath.Join(work, progressFile),
		RunDir:          j.Dir,
		RunID:           j.RunID,
		Attempt:         j.Attempt,
		AllowedTools:    toolList(j.Tools),
		ToolsRestricted: j.Tools != nil,
		BudgetTokens:    number(j.Allowance.Tokens),
		BudgetUSDCents:  number(j.Allowance.USDCents),
	}
	if !j.Deadline.IsZero() {
		f.Deadline = j.Deadline.UTC().Format(time.RFC3339)
	}
	return f
}

func number(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// maxList limits a list in argv or the environment. The kernel's limit for one string is
// 128 KiB (E2BIG beyond).
const maxList = 64 << 10

// toolList joins the tools. It drops names that could be read as something else than one
// tool, and names beyond maxList: that allows fewer tools, never more. The request file has
// all of them.
func toolList(tools []string) string {
	var list strings.Builder
	for _, name := range tools {
		if !plainTool(name) || list.Len()+1+len(name) > maxList {
			continue
		}
		if list.Len() > 0 {
			list.WriteByte(',')
		}
		list.WriteString(name)
	}
	return list.String()
}

func plainTool(name string) bool {
	return name != "" && name[0] != '-' && !strings.ContainsFunc(name, func(r rune) bool {
		return r == ',' || unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
}

// parseCommand parses every element of a command that Check has approved.
func parseCommand(command []string) ([]*template.Template, error) {
	parsed := make([]*template.Template, len(command))
	for i, element := range command {
		var err error
		if parsed[i], err = parseElement(element); err != nil {
			return nil, fmt.Errorf("exec.command[%d]: %w", i, err)
		}
	}
	return parsed, nil
}

// argv renders each element by itself, so an element is always one argument. The profile's
// arguments follow.
func (g *Agent) argv(j task.Job, f facts) ([]string, error) {
	if s := g.binding.Service; s != nil {
		return hostArgv(*s, j.Plan)
	}
	argv := make([]string, len(g.command))
	for i, t := range g.command {
		if argv[i] = g.binding.Command[i]; !strings.Contains(argv[i], "{{") {
			continue
		}
		var text strings.Builder
		if err := t.Execute(&text, f); err != nil {
			return nil, fmt.Errorf("exec.command[%d]: %w", i, err)
		}
		argv[i] = text.String()
	}
	if g.runArguments != nil {
		argv = append(argv, g.runArguments(j)...)
	}
	resume := ""
	if j.Task.Continues() != "" {
		s, _ := readSessionFile(j.Dir)
		resume = s.Continues
	}
	if host := recipes[g.binding.Profile].host; host != nil {
		return host.argv(argv, resume)
	}
	if resume != "" {
		argv = sessionRecipes[g.binding.Profile].argv(argv, resume)
	}
	return argv, nil
}

// timeout returns the time limit of the whole run: the shorter of the agent's and the
// task's; 0: unlimited.
func (g *Agent) timeout(j task.Job) time.Duration {
	if own := g.binding.Timeout; j.Timeout == 0 || own > 0 && own < j.Timeout {
		return own
	}
	return j.Timeout
}

// spec returns how to run the job.
func (g *Agent) spec(j task.Job) (runner.Spec, error) {
	f := newFacts(j)
	g.addFiles(&f, j)
	argv, err := g.argv(j, f)
	if err != nil {
		return runner.Spec{}, err
	}
	b := g.binding
	s := runner.Spec{
		Dir: j.Dir, Argv: argv, Env: environment(g.environ, j, f), Cwd: cmp.Or(j.Cwd, b.Cwd, g.continuedDir(j)), CwdResolved: j.Task.Workdir() != "",
		Timeout: g.timeout(j), IdleTimeout: b.IdleTimeout, Progress: f.ProgressFile,
		ExitTimeout: b.ExitTimeout, Answer: f.ResultFile,
		Deadline: j.Deadline, Lease: j.Lease, MaxOutput: b.MaxOutput, Grace: b.Grace,
		Recorded: g.passesTools(j, argv), // enforcement reads it again
	}
	for _, entry := range recipes[b.Profile].host.variables() {
		name, value, _ := strings.Cut(entry, "=")
		s.Env = setVariable(s.Env, name, value)
	}
	if r := b.rulesFor(j); r != nil && r.env != "" {
		text, err := r.addTo(s.Env)
		if err != nil {
			return runner.Spec{}, err
		}
		s.Env = setVariable(s.Env, r.env, text)
	}
	if s.Setup.Argv, err = g.setup(j); err != nil {
		return runner.Spec{}, err
	}
	s.Recorded = s.Recorded || s.Setup.Argv != nil
	switch b.Stdin {
	case Request:
		s.Stdin = f.TaskFile
		if b.Speaks() != envelope.AINL {
			s.Stdin = f.ConversationFile
		}
	case Prompt:
		s.Stdin = inDir(j, promptFile)
	case Dispatch, Action:
		s.Stdin = inDir(j, dispatchFile)
	}
	return s, nil
}
