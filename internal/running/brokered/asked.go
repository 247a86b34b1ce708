package brokered

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/broker"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/services"
	"mailboxd/internal/sandboxing/sandbox"
	"mailboxd/internal/stores/dirtree"
)

// An agent may ask for calls in messages (CLUTCH-33). They are made when its run has ended, by a process
// that the keeper runs beside a tool broker, as it runs an agent. The broker goes on with the record of the
// agent's own run. The directory of that process is durable before it starts, and no directory is used
// twice, so that no call is made twice.
const (
	askedDir  = "asked"      // in the run directory
	askedFile = "calls.json" // in askedDir: a broker.Asked
)

// A Caller makes the calls of a run that has ended.
type Caller struct {
	Tools
	Job    task.Job
	Limits runner.Spec // on the process that makes the calls
	Run    func(ctx context.Context, s runner.Spec, started func(runner.Process)) (task.Exit, error)
	Await  func(ctx context.Context, dir string) (task.Exit, bool, error)
}

// Asks returns the call for which a message asks, as mcp:SERVER/TOOL, SERVER/TOOL or SERVER__TOOL. It
// reports whether a broker decides about it: the agent has tools of that server, and the run has tools of
// some server.
func (t Tools) Asks(m envelope.Message) (call broker.AskedCall, ok bool) {
	var data struct {
		Tool string         `json:"tool"`
		Args jsontext.Value `json:"args"`
	}
	if m.Act != envelope.Calls || m.Clutch == nil || len(t.List) == 0 || json.Unmarshal(m.Data, &data, lenient) != nil {
		return call, false
	}
	name, prefixed := strings.CutPrefix(data.Tool, "mcp:")
	server, tool, divided := strings.Cut(name, "/")
	if !divided {
		server, tool, divided = strings.Cut(name, "__")
	}
	ok = (prefixed || divided) && slices.ContainsFunc(t.Servers, func(s services.Server) bool { return s.ID == server })
	return broker.AskedCall{Server: server, Tool: tool, Arguments: []byte(data.Args)}, ok
}

// Make makes the calls for which the messages of an outcome ask, and adds what came of them.
func (c Caller) Make(ctx context.Context, o task.Outcome) task.Outcome {
	messages, at := slices.Clone(o.Messages), []int(nil)
	var asked broker.Asked
	for i, m := range messages {
		if call, ok := c.Asks(m); ok {
			at, asked.Calls = append(at, i), append(asked.Calls, call)
		}
	}
	if len(at) == 0 || !goesOn(o) || !Has(c.Job) {
		return o
	}
	why := "nothing was sent"
	from, err := c.once(ctx, asked)
	unread, failed := errors.AsType[*runner.UnreadError](err)
	switch {
	case errors.Is(err, runner.ErrDetach):
		return task.Outcome{Detached: true}
	case failed:
		return task.Outcome{Exit: o.Exit, Unread: unread}
	case err != nil:
		why += ": " + err.Error()
	}
	returned, err := returnedSince(c.Job.Dir, from)
	if runner.Passing(err) {
		return task.Outcome{Exit: o.Exit, Unread: err}
	}
	for i, n := range at {
		r := unavailable(why)
		if i < len(returned) {
			r = returned[i]
		}
		messages[n].Returned = &r
	}
	o.Messages = messages
	return o
}

// goesOn reports whether the messages of an outcome have an effect: no other attempt replaces it.
func goesOn(o task.Outcome) bool {
	if o.Hold == "" {
		return !o.Retry && o.Result.Status != envelope.Failed
	}
	return !o.Retry && conversation.Suspends(o.Hold)
}

// once runs the process that makes the calls, or waits for the one of an earlier daemon. It returns where
// their record begins. An error says why calls may not have been made.
func (c Caller) once(ctx context.Context, asked broker.Asked) (from int64, err error) {
	dir := filepath.Join(c.Job.Dir, askedDir)
	text, err := os.ReadFile(filepath.Join(dir, askedFile))
	switch {
	case err == nil:
		if err := json.Unmarshal(text, &asked); err != nil {
			return 0, err
		}
		return asked.From, c.watch(ctx, asked.From, func(ctx context.Context) (task.Exit, error) {
			exit, _, err := c.Await(ctx, dir)
			return exit, err
		})
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	case ctx.Err() != nil:
		return 0, context.Cause(ctx)
	}
	if info, err := os.Stat(filepath.Join(c.Job.Dir, broker.CallsFile)); err == nil {
		asked.From = info.Size()
	}
	token := rand.Text() // not that of the agent's run, which has ended
	s, err := c.spec(dir, token)
	if err == nil {
		err = write(dir, token, asked)
	}
	if err != nil {
		return asked.From, err
	}
	return asked.From, c.watch(ctx, asked.From, func(ctx context.Context) (task.Exit, error) { return c.Run(ctx, s, nil) })
}

// pollInterval is the time between two looks at what the broker does and asks.
const pollInterval = 100 * time.Millisecond

// watch runs the process that makes calls, and meanwhile reads what its broker does and asks.
func (c Caller) watch(ctx context.Context, from int64, run func(context.Context) (task.Exit, error)) error {
	r := NewReader(c.Job)
	if r != nil {
		r.offset = from
	}
	var reading sync.WaitGroup
	done := make(chan struct{})
	reading.Go(func() {
		timer := time.NewTicker(pollInterval)
		defer timer.Stop()
		for {
			r.Poll()
			select {
			case <-done:
				return
			case <-timer.C:
			}
		}
	})
	exit, err := run(ctx)
	close(done)
	reading.Wait()
	if err != nil {
		r.Poll()
		return err
	}
	err = answerSent(c.Job.Dir, from) // the process has ended, and its broker
	r.Poll()
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case exit.Cause != "":
		return errors.New(cmp.Or(exit.Reason, "the calls were ended: "+string(exit.Cause)))
	case exit.Code != 0:
		return fmt.Errorf("the tools can't be used: %s", c.lastWords())
	}
	return nil
}

// lastWords returns the end of the standard error of the process that makes calls.
func (c Caller) lastWords() string {
	const most = 500
	text, err := readFrom(filepath.Join(c.Job.Dir, askedDir), runner.StderrFile, 0)
	if err != nil {
		return err.Error()
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(text[max(0, len(text)-most):])), "")
}

// spec returns how to run the process that makes the calls.
func (c Caller) spec(dir, token string) (runner.Spec, error) {
	s := c.Limits
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	config, err := c.Config(c.Job, dir, token)
	if err != nil {
		return s, err
	}
	s.Dir, s.Argv, s.Stdin = dir, []string{self, runner.BrokerName, broker.CallArgument}, filepath.Join(dir, askedFile)
	s.Env, s.Recorded = []string{sandbox.ToolsTokenVariable + "=" + filepath.Join(dir, broker.TokenFile)}, true
	s.Broker, err = config.Encode()
	return s, err
}

// write makes the directory of the process with what it reads. It is durable then, with the run directory and
// the two above it, which may be as new.
func write(dir, token string, asked broker.Asked) error {
	text, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	err = dirtree.WriteFile(filepath.Join(dir, broker.TokenFile), []byte(token+"\n"))
	err = errors.Join(err, dirtree.WriteFile(filepath.Join(dir, askedFile), text))
	for range 3 {
		dir = filepath.Dir(dir)
		err = errors.Join(err, dirtree.SyncDir(dir))
	}
	return err
}
