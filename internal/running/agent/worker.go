package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/worker"
)

// A Worker configures processes that work for an agent, one task after another or several
// at once. A process reads an AgentTaskRequest as one line and prints an AgentTaskResult
// with its task_id as one line; or, in Clutch, it reads a task.request and prints messages up
// to task.result or task.error. The processes end with the daemon.
type Worker struct {
	Command  []string // argv: a path or a name on PATH, then literal arguments
	Count    int      // processes; 0: one
	InFlight int      // concurrent tasks of one process; 0: one
}

func (w *Worker) withDefaults() *Worker {
	filled := Worker{Command: slices.Clone(w.Command), Count: w.Count, InFlight: w.InFlight}
	setDefault(&filled.Count, 1)
	setDefault(&filled.InFlight, 1)
	return &filled
}

func (b Binding) checkWorker() *FieldError {
	w := b.Worker
	switch {
	case len(b.Command) > 0:
		return wrong("worker", "an agent has exec or worker, not both")
	case len(w.Command) == 0 || w.Command[0] == "":
		return wrong("worker.command", "required, a list such as [./worker.py]")
	case strings.Contains(w.Command[0], "/") && !filepath.IsAbs(w.Command[0]):
		return wrong("worker.command[0]", "%q is a relative path", w.Command[0])
	case w.Count < 1 || w.Count > 1000:
		return wrong("worker.count", "must be between 1 and 1000")
	case w.InFlight < 1 || w.InFlight > 10_000:
		return wrong("worker.in_flight", "must be between 1 and 10000")
	case b.IdleTimeout != 0:
		return wrong("idle_timeout", "a worker has none; its tasks have a timeout")
	case b.Output != Envelope:
		return wrong("exec.output", "a worker answers with an envelope")
	}
	for i, element := range w.Command {
		if strings.ContainsRune(element, 0) {
			return wrong(fmt.Sprintf("worker.command[%d]", i), "contains a NUL character")
		}
	}
	return nil
}

func (g *Agent) newPool() *worker.Pool {
	b, environ, opts := g.binding, g.environ, g.opts
	spec := worker.Spec{
		Argv: b.Worker.Command, Env: environ, Cwd: b.Cwd,
		Dir: opts.WorkerDir, Mark: runner.DirVariable,
		Count: b.Worker.Count, InFlight: b.Worker.InFlight,
		Backoff: b.Backoff, Grace: b.Grace,
	}
	if b.Sandbox.Active() {
		spec.Enclose = g.encloseWorker
	}
	return worker.NewPool(spec, func(err error) {
		if opts.Notice != nil {
			opts.Notice(b.ID, err)
		}
	})
}

// ask has a worker do the job.
func (g *Agent) ask(ctx context.Context, j task.Job) task.Outcome {
	line, id, err := g.workerLine(j.Task)
	if err != nil {
		return g.notStarted(j, envelope.InternalError, "the task cannot be written as a line for a worker: "+err.Error())
	}
	got, err := g.workers.Ask(ctx, worker.Question{
		ID: id, Line: line, Timeout: g.timeout(j), Deadline: j.Deadline, Interim: g.interim(j),
	})
	exit := task.Exit{PID: got.PID, Started: got.Started, Finished: got.Finished, Wall: got.Wall}
	if inside := got.Sandbox.Release != nil && got.Line != nil; inside { // only the command prints, and it runs only inside
		exit.Sandboxed, exit.Confined = !got.Sandbox.Weaker, got.Sandbox.Weaker
	}
	if err != nil {
		exit.Code = -1
		return g.noReply(j, exit, err)
	}
	reply, err := g.decodeLine(j, got.Line)
	if reply = g.checkIdentity(j, reply, err); reply.err != nil {
		reply = failed(reply, envelope.Error{Kind: reply.kind, Message: reply.err.Error()})
	}
	setDefault(&reply.result.Status, envelope.OK)
	return task.Outcome{Result: g.complete(j, exit, reply), Exit: exit}
}

// workerLine returns a task as one line in the worker's dialect, and the id by which the
// worker answers it.
func (g *Agent) workerLine(t envelope.Task) ([]byte, envelope.ID, error) {
	if g.binding.Speaks() == envelope.Clutch {
		return clutchLine(t)
	}
	line, err := ainlLine(t)
	return line, t.ID, err
}

// ainlLine returns a task as one AgentTaskRequest on one line: the exact bytes of an AINL
// request, the translation of any other. A process has several tasks at once, so a line
// that it couldn't parse, or answer by its task_id, is an error here.
func ainlLine(t envelope.Task) ([]byte, error) {
	line := dialect.Translate(t, envelope.AINL)
	if !bytes.Equal(line, t.Raw) {
		again, findings := envelope.DecodeTask(line, envelope.Strict)
		if err := findings.Refusals(); len(err) > 0 {
			return nil, errors.New(short(err.String()))
		}
		if again.ID != t.ID {
			return nil, fmt.Errorf("its translation is about another task, %q", again.ID)
		}
	}
	return oneLine(quoteID(line, t.ID))
}

// quoteID turns a numeric task_id into a string (AINL-31), as every AgentTaskRequest has
// it.
func quoteID(request []byte, id envelope.ID) []byte {
	if strings.Trim(string(id), "-0123456789") != "" {
		return request
	}
	in := jsontext.NewDecoder(bytes.NewReader(request), lenient)
	for _, err := in.ReadToken(); err == nil; {
		var name jsontext.Token
		if name, err = in.ReadToken(); err != nil || name.Kind() != '"' {
			break
		}
		found := name.String() == "task_id"
		var value jsontext.Value
		if value, err = in.ReadValue(); found && value.Kind() == '0' {
			end := in.InputOffset()
			start := end - int64(len(value))
			return slices.Concat(request[:start], []byte(strconv.Quote(string(id))), request[end:])
		}
	}
	return request
}

// oneLine returns the exact bytes of a task without the line ends that a request from
// another source may have.
func oneLine(raw []byte) ([]byte, error) {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return raw, nil
	}
	return jsontext.AppendFormat(nil, raw, lenient, jsontext.PreserveRawStrings(true))
}

// noReply returns the outcome of a job that no worker answered.
func (g *Agent) noReply(j task.Job, exit task.Exit, err error) task.Outcome {
	if missing, ok := errors.AsType[*noSandboxError](err); ok {
		return g.notStarted(j, envelope.SandboxUnavailable, missing.Error())
	}
	if start, ok := errors.AsType[*worker.StartError](err); ok {
		return g.noProcess(j, start)
	}
	died, dead := errors.AsType[*worker.ExitError](err)
	switch {
	case errors.Is(err, worker.ErrDeadline) && exit.PID == 0:
		return g.notStarted(j, envelope.DeadlineExceeded, "the deadline was over before a worker had room")
	case exit.PID == 0:
		return g.void(j, "the run was ended before a worker had it: "+err.Error())
	case dead:
		return g.workerDied(j, exit, died)
	case errors.Is(err, worker.ErrTimeout):
		exit.Cause = task.CauseTimeout
	case errors.Is(err, worker.ErrDeadline):
		exit.Cause = task.CauseDeadline
	case errors.Is(err, worker.ErrTooLong):
		exit.Cause = task.CauseOutputTooLarge
	default:
		exit.Cause, exit.Reason = task.CauseInterrupted, err.Error()
	}
	failure := g.failure(j, exit)
	if exit.Cause == task.CauseOutputTooLarge {
		failure.Message = err.Error()
	}
	reply := g.answer(j)
	return task.Outcome{Result: g.complete(j, exit, failed(reply, failure)), Exit: exit, Retry: g.mayRepeat(j, reply, failure.Kind)}
}

// workerDied returns the outcome of a job whose worker died. An exit status of 75 asks for
// another attempt at all its jobs.
func (g *Agent) workerDied(j task.Job, exit task.Exit, died *worker.ExitError) task.Outcome {
	exit.Code, exit.Signal = died.Code, died.Signal
	if died.Unsandboxed {
		exit.Reason = strings.TrimSpace(string(died.Stderr))
		return g.notEnclosed(j, exit)
	}
	if died.OutOfMemory {
		exit.Cause = task.CauseMemory
		failure := g.failure(j, exit)
		failure.Message += quote(died.Stderr, died.Cut)
		return task.Outcome{Result: g.complete(j, exit, failed(g.answer(j), failure)), Exit: exit}
	}
	failure := envelope.Error{Kind: envelope.AgentCrashed, Message: died.Error() + quote(died.Stderr, died.Cut)}
	reply := g.answer(j)
	retry := died.Code == tempFail || g.mayRepeat(j, reply, failure.Kind)
	return task.Outcome{Result: g.complete(j, exit, failed(reply, failure)), Exit: exit, Retry: retry}
}
