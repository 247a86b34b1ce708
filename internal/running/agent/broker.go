package agent

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/broker"
	"mailboxd/internal/running/external"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/toolcall"
)

// recordedFile is the file of a run directory that says how much of the broker's record is events.
const recordedFile = "calls.recorded"

// divideTools divides a list into the tools of the program and those that a broker offers it. The first
// is nil for nil: they are not limited.
func (b Binding) divideTools(tools []string) (own, brokered []string) {
	own = slices.Clone(tools)
	return slices.DeleteFunc(own, func(entry string) bool {
		offered := len(external.Named(b.Servers, []string{entry})) > 0
		if offered {
			brokered = append(brokered, entry)
		}
		return offered
	}), brokered
}

// addBroker adds the tool broker of a run to its Spec, if it may use tools of MCP servers.
func addBroker(s *runner.Spec, j task.Job, g *Agent, boxed bool) error {
	_, tools := g.binding.divideTools(j.Tools)
	if len(tools) == 0 {
		return nil
	}
	c := broker.Config{Dir: j.Dir, Token: rand.Text(), Boxed: boxed, Tools: tools, Calls: j.Calls}
	if g.opts.Own.State != "" {
		c.Known = filepath.Join(g.opts.Own.State, "tools")
	}
	for _, server := range external.Named(g.binding.Servers, tools) {
		own, err := brokered(server, j.Dir)
		if err != nil {
			return err
		}
		c.Servers = append(c.Servers, own)
	}
	text, err := c.Encode()
	if err != nil {
		return err
	}
	err = errors.Join(create(inDir(j, broker.TokenFile), []byte(c.Token+"\n")), create(inDir(j, broker.AnswersFile), nil))
	if err = errors.Join(err, writeServers(g, j, c.Token)); err != nil {
		return err
	}
	s.Broker, s.Env = text, append(s.Env, broker.Variable+"="+inDir(j, broker.TokenFile))
	return nil
}

// brokered returns a server with the variables that the daemon has for it. By the run directory among
// them, the keeper knows the processes of the server.
func brokered(s external.Server, dir string) (broker.Server, error) {
	service, list := s.Tool("", "")
	env, wrong := inherit(list, os.LookupEnv)
	if wrong != nil {
		return broker.Server{}, wrong
	}
	own := broker.Server{Service: *service, Env: append(env, runner.DirVariable+"="+dir), Bearer: os.Getenv(s.BearerEnv)}
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(service.Env, name) {
			own.Secrets = append(own.Secrets, entry)
		}
	}
	if own.Bearer != "" {
		own.Secrets = append(own.Secrets, s.BearerEnv+"="+own.Bearer)
	}
	return own, nil
}

// A brokerReader reads what the broker of a run did, and makes events of it. nil is of a run without a
// broker.
type brokerReader struct {
	job    task.Job
	calls  *toolcall.Calls
	offset int64
}

func newBrokerReader(j task.Job) *brokerReader {
	if j.Dir == "" || j.Used == nil {
		return nil
	}
	if _, err := os.Lstat(inDir(j, broker.AnswersFile)); err != nil {
		return nil
	}
	return &brokerReader{job: j, calls: toolcall.Brokered(j, broker.CallsFile, broker.AnswersFile)}
}

// poll reads new lines. It asks again about calls that had no decision before a restart; their
// answers are in the ledger.
func (r *brokerReader) poll() {
	if r == nil {
		return
	}
	defer r.calls.DecideOpen()
	f, err := openRegular(r.job.Dir, broker.CallsFile)
	if err != nil {
		return // nothing was called
	}
	defer f.close()
	recorded := r.recorded()
	in := bufio.NewReader(io.NewSectionReader(f, r.offset, max(0, f.size-r.offset)))
	for {
		line, err := in.ReadBytes('\n')
		if err != nil || !r.take(bytes.TrimSpace(line), r.offset < recorded) {
			return
		}
		r.offset += int64(len(line))
	}
}

// recorded returns up to where the lines have events.
func (r *brokerReader) recorded() int64 {
	text, _ := os.ReadFile(inDir(r.job, recordedFile))
	n, _ := strconv.ParseInt(string(text), 10, 64)
	return n
}

// take takes a line, and reports whether that is done for good.
func (r *brokerReader) take(line []byte, recorded bool) bool {
	var data struct {
		Ask     *task.Call    `json:"ask"`
		Called  *task.ToolUse `json:"called"`
		Refused *task.ToolUse `json:"refused"`
		Changed *task.ToolUse `json:"changed"`
	}
	if json.Unmarshal(line, &data, lenient) != nil {
		return true
	}
	if data.Ask != nil {
		r.calls.AskBrokered(*data.Ask)
	}
	var err error
	switch {
	case recorded:
	case data.Called != nil:
		err = r.job.Used(task.KindToolCalled, *data.Called)
	case data.Refused != nil:
		err = r.job.Used(task.KindToolRefused, *data.Refused)
	case data.Changed != nil:
		err = r.job.Used(task.KindToolChanged, *data.Changed)
	default:
		return true
	}
	if err != nil {
		return false // tried again
	}
	if !recorded {
		at := strconv.FormatInt(r.offset+int64(len(line))+1, 10)
		_ = os.WriteFile(inDir(r.job, recordedFile), []byte(at), 0o600) // otherwise an event may come twice after a restart
	}
	return true
}

// addBrokerLevel says who held the tools of MCP servers: mailboxd, which is certain only if the agent can't
// reach its files and processes.
func addBrokerLevel(j task.Job, levels envelope.Levels, exit task.Exit) {
	if _, err := os.Lstat(inDir(j, broker.AnswersFile)); j.Dir == "" || err != nil {
		return
	}
	levels[envelope.ControlMCPTools] = envelope.LevelDaemonUnsandboxed
	if exit.Sandboxed {
		levels[envelope.ControlMCPTools] = envelope.LevelDaemon
	}
}
