package runners_test

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"

	"mailboxd/internal/testtools/programs"
	"mailboxd/internal/testtools/slowtest"
)

// A machine is one of a site. Its processes have its directory as their home.
type machine string

const (
	local machine = "local" // has the owner
	gpu   machine = "gpu"   // has the runner
)

// A site is an owner, a hub and a runner in a directory, which is kept when the test fails.
type site struct {
	t   *testing.T
	dir string

	listen string             // of the hub
	hubAt  machine            // that has the hub
	spaces map[machine]string // the network namespaces of machines; "": that of the test
	boot   string             // of gpu; "": that of this machine

	unreachable string // how long the owner waits for a runner; "": a day

	url                string // of the hub
	hub, owner, runner *process
}

// begun is what an agent does first, and ended what it does last.
const (
	begun = `echo "$MAILBOX_TASK_ID" >>"$HOME/begun"; `
	ended = `; echo "the answer of $MAILBOX_TASK_ID"; echo "$MAILBOX_TASK_ID" >>"$HOME/ended"`
)

// agents are those of the runner. A worker works until the test lets it go; a talker says lines of a file, and ends when
// it is told to.
var agents = map[string]string{
	"worker": begun + `while [ ! -e "$HOME/go-$MAILBOX_TASK_ID" ]; do sleep 0.2; done` + ended,
	"again":  begun + `while [ ! -e "$HOME/go-$MAILBOX_TASK_ID" ]; do sleep 0.2; done` + ended,
	"talker": `trap 'echo "$MAILBOX_TASK_ID" >>"$HOME/stopped"; exit 1' TERM; : >>"$HOME/said"; tail -n +1 -f "$HOME/said" & ` + begun + `wait`,
}

// newSite makes a site. Its processes are ended after the test.
func newSite(t *testing.T, change ...func(*site)) *site {
	t.Helper()
	slowtest.SkipShort(t, "it starts an owner, a hub and a runner")
	t.Parallel()
	dir, err := os.MkdirTemp("", "runners-")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: dir, hubAt: local, spaces: map[machine]string{}}
	for _, name := range []string{"box/tasks", "box/results", "local/run", "gpu/run"} {
		s.must(os.MkdirAll(s.path(name), 0o700))
	}
	t.Cleanup(func() {
		s.end()
		if t.Failed() {
			t.Logf("the evidence is kept in %s", dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
	for _, do := range change {
		do(s)
	}
	if s.listen == "" {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		s.must(err)
		s.listen = free.Addr().String()
		s.must(free.Close())
	}
	host, _, _ := net.SplitHostPort(s.listen)
	s.run(s.hubAt, "mailboxd-hub", "--dir", s.path("hub"), "init", "--listen", s.listen, "--host", host, "--enroll", "gpu-1")
	s.configure()
	return s
}

// configure writes the configurations. The lease is the shortest that there is.
func (s *site) configure() {
	scheme := "nats"
	if _, err := os.Stat(s.path("hub/tls/cert.pem")); err == nil {
		scheme = "tls"
	}
	s.url = scheme + "://" + s.listen
	var owner, runner strings.Builder
	fmt.Fprintf(&owner, "root: %s\nstate_dir: %s\nintake: {rescan: 200ms}\n", s.path("box"), s.path("local/state"))
	fmt.Fprintf(&owner, "remote: {url: '%s', credentials: %s, lease: 30s, unreachable: %s}\nagents:\n", s.url, s.path("hub/hub.nk"), cmp.Or(s.unreachable, "24h"))
	fmt.Fprintf(&runner, "slots: 20\nstate: %s\nworktrees_dir: %s\nmin_free_bytes: 0\nagents:\n", s.path("gpu/state"), s.path("gpu/worktrees"))
	for id, command := range agents {
		more := ""
		if id == "again" {
			more = "idempotent: true, retries: 2, "
		}
		fmt.Fprintf(&owner, "  - {id: %s, concurrency: 20, %sremote: {}}\n", id, more)
		text, err := json.Marshal(command)
		s.must(err)
		fmt.Fprintf(&runner, "  - {id: %s, concurrency: 20, %sexec: {command: [sh, -c, %s], env: ['HOME=%s'], output: text}}\n", id, more, text, s.path("gpu"))
	}
	s.must(os.WriteFile(s.path("config.yaml"), []byte(owner.String()), 0o600))
	s.must(os.WriteFile(s.path("runner.yaml"), []byte(runner.String()), 0o600))
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// command returns a command on a machine.
func (s *site) command(on machine, program string, args ...string) *exec.Cmd {
	argv := append([]string{filepath.Join(bin, program)}, args...)
	if space := s.spaces[on]; space != "" {
		argv = append([]string{"ip", "netns", "exec", space}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	home := s.path(string(on))
	cmd.Env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + home, "XDG_RUNTIME_DIR=" + home + "/run", "TMPDIR=" + s.dir,
		"XDG_STATE_HOME=" + home + "/state",
	}
	if on == gpu {
		cmd.Env = append(cmd.Env, "MAILBOXD_FAULT_BOOT="+s.boot)
	}
	return cmd
}

// run runs a command on a machine, and returns its output.
func (s *site) run(on machine, program string, args ...string) string {
	s.t.Helper()
	out, err := s.command(on, program, args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// mailboxd runs a command of the owner's user.
func (s *site) mailboxd(args ...string) string {
	s.t.Helper()
	return s.run(local, "mailboxd", append([]string{"--config", s.path("config.yaml")}, args...)...)
}

// A process is a program that was started, until it is reaped.
type process struct {
	cmd  *exec.Cmd
	gone chan struct{}
}

// start starts a program whose log is a file.
func (s *site) start(on machine, log, program string, args ...string) *process {
	s.t.Helper()
	cmd := s.command(on, program, args...)
	file, err := os.OpenFile(s.path(log), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	s.must(err)
	cmd.Stdout, cmd.Stderr = file, file
	s.must(cmd.Start())
	s.must(file.Close())
	return s.reaped(cmd)
}

// reaped reaps a program that was started.
func (s *site) reaped(cmd *exec.Cmd) *process {
	p := &process{cmd: cmd, gone: make(chan struct{})}
	work.Go(func() { _ = cmd.Wait(); close(p.gone) })
	return p
}

// kill kills a program, and waits until it is gone.
func (p *process) kill() { p.end(unix.SIGKILL) }

func (p *process) end(with os.Signal) {
	_ = p.cmd.Process.Signal(with)
	<-p.gone
}

func (s *site) startHub() {
	s.hub = s.start(s.hubAt, "hub.log", "mailboxd-hub", "--dir", s.path("hub"), "serve", "--listen", s.listen)
}

func (s *site) startOwner() {
	s.owner = s.start(local, "owner.log", "mailboxd", "--config", s.path("config.yaml"), "serve")
}

func (s *site) startRunner() {
	s.runner = s.start(gpu, "runner.log", "mailboxd", "--config", s.path("runner.yaml"), "runner", "--connect", s.url,
		"--credentials", s.path("hub/credentials/gpu-1.nk"))
}

// serve starts hub, owner and runner.
func (s *site) serve() {
	s.startHub()
	s.startOwner()
	s.startRunner()
}

// send sends tasks to an agent, and waits until their agents work.
func (s *site) send(agent string, ids ...string) {
	s.t.Helper()
	file, err := os.OpenFile(s.path("box/tasks/tasks.jsonl"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	s.must(err)
	before := len(s.lines("begun"))
	for _, id := range ids {
		_, failed := fmt.Fprintf(file, `{"schema_version":"1.0","task_id":%q,"requester_id":"me","target_agent":%q,"target_role":"executor",`+
			`"task_type":"work","description":"a task","input":{"refs":[],"payload":{}}}`+"\n", id, agent)
		err = cmp.Or(err, failed)
	}
	s.must(errors.Join(err, file.Close()))
	s.await("agents that work", func() bool { return len(s.lines("begun")) == before+len(ids) })
}

// release lets agents go on that wait.
func (s *site) release(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		s.must(os.WriteFile(s.path("gpu/go-"+id), nil, 0o600))
	}
}

// lines returns the lines of a file of agents.
func (s *site) lines(name string) []string {
	text, _ := os.ReadFile(s.path("gpu/" + name))
	return strings.Fields(string(text))
}

// await waits until something holds.
func (s *site) await(what string, holds func() bool) {
	s.t.Helper()
	over, again := time.After(2*time.Minute), time.NewTicker(50*time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-over:
			s.t.Fatalf("there were not %s", what)
		}
	}
}

// A result is what a test reads of a result file.
type result struct {
	Status string
	Text   string // the whole file
}

// result returns the result of a task; the zero value for none yet.
func (s *site) result(id string) (r result) {
	s.t.Helper()
	text, err := os.ReadFile(s.path("box/results/" + id + ".json"))
	if errors.Is(err, os.ErrNotExist) {
		return r
	}
	s.must(err)
	s.must(json.Unmarshal(text, &r, json.MatchCaseInsensitiveNames(true)))
	r.Text = string(text)
	return r
}

// wantAnswers waits for the answers of tasks, and holds that each of them had one attempt, whose agent began once.
func (s *site) wantAnswers(ids ...string) {
	s.t.Helper()
	s.await("results of "+strings.Join(ids, ", "), func() bool {
		for _, id := range ids {
			if s.result(id).Status == "" {
				return false
			}
		}
		return true
	})
	count := map[string]int{}
	for _, id := range s.lines("begun") {
		count[id]++
	}
	assigned := s.events("run.assigned")
	for _, id := range ids {
		if r := s.result(id); r.Status != "ok" || !strings.Contains(r.Text, "the answer of "+id) {
			s.t.Errorf("the result of %s is %s; want its answer", id, r.Text)
		}
		if count[id] != 1 || len(assigned[id]) != 1 {
			s.t.Errorf("the agent of %s began %d times, and it was assigned %d times; want once", id, count[id], len(assigned[id]))
		}
	}
}

// events returns the data of all events of a kind, by task.
func (s *site) events(kind string) map[string][]string {
	s.t.Helper()
	all := map[string][]string{}
	lines := bufio.NewScanner(strings.NewReader(s.mailboxd("events", "--json")))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Kind string         `json:"kind"`
			Task string         `json:"task_id"`
			Data jsontext.Value `json:"data"`
		}
		s.must(json.Unmarshal(lines.Bytes(), &e))
		if e.Kind == kind {
			all[e.Task] = append(all[e.Task], string(e.Data))
		}
	}
	return all
}

// processes returns the processes of a machine: those of runs, and the others.
func (s *site) processes(on machine) (runs, others []int) {
	of := func(isRun bool) []int {
		return programs.Processes(func(_, environment string) bool {
			return strings.Contains(environment, "HOME="+s.path(string(on))) && strings.Contains(environment, "MAILBOX_RUN_DIR=") == isRun
		})
	}
	return of(true), of(false)
}

// crash ends all processes of a machine, as when it loses its power: what watches runs first.
func (s *site) crash(on machine) {
	_, others := s.processes(on)
	programs.Kill(others)
	runs, _ := s.processes(on)
	programs.Kill(runs)
}

// end ends what is left.
func (s *site) end() {
	s.crash(gpu)
	s.crash(local)
}
