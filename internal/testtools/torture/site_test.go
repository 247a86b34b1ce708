package torture_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/testtools/programs"
)

// A site is one mailbox with everything around it, in a directory that is kept
// when the test fails.
type site struct {
	dir   string
	binds []bind
	boot  string // the boot of the machine to be played; "" for the real one

	damage *damage // what is done to the state between two lives; nil: nothing
}

// A bind is one agent of the configuration: its id is the part it plays.
type bind struct {
	part        string
	concurrency int
	retries     int
	worker      bool   // a process that stays, and may be asked twice
	inbox       bool   // no process: its tasks are fetched
	output      string // how its answers are read; "" as an envelope
	dialect     string // in which it is asked, and answers; "" for AINL
	sandboxed   bool
}

var cast = []bind{
	{part: "fast", concurrency: 4},
	{part: "slow", concurrency: 4},
	{part: "crash", concurrency: 2},
	{part: "fork", concurrency: 2},
	{part: "again", concurrency: 2, retries: 3},
	{part: "file", concurrency: 2},
	{part: "pull", inbox: true},
	{part: "login", concurrency: 2, output: "claude"},
	{part: "speak", concurrency: 2, dialect: "clowl"},
}

func newSite(t *testing.T) *site {
	t.Helper()
	dir, err := os.MkdirTemp("", "torture-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	s := &site{dir: dir, binds: castOf()}
	for _, name := range []string{"box", "box/tasks", "box/results", "project", "tmp"} {
		err = errors.Join(err, os.Mkdir(s.path(name), 0o700))
	}
	err = errors.Join(err, os.WriteFile(s.path("diary"), nil, 0o600)) // only files that exist are in a sandbox
	err = errors.Join(err, os.WriteFile(s.path("config.yaml"), s.config(), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.end()
		if t.Failed() {
			t.Logf("seed %d; the evidence is kept in %s", *seed, dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
	return s
}

func (s *site) path(name string) string   { return filepath.Join(s.dir, name) }
func (s *site) tasks(name string) string  { return s.path("box/tasks/" + name) }
func (s *site) result(name string) string { return s.path("box/results/" + name + ".json") }

const maxLine = 128 << 10

func (s *site) config() []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "root: %s\nstate_dir: %s\n", s.path("box"), s.path("state"))
	fmt.Fprintf(&text, "log: {format: json, level: info}\nintake: {rescan: 200ms, max_line_bytes: %d}\nlimits: {concurrency: 12}\nagents:\n", maxLine)
	for _, b := range s.binds {
		fmt.Fprintf(&text, "  - {id: %s, dialect: %s, retries: %d, backoff: 10ms, ", b.part, cmp.Or(b.dialect, "ainl"), b.retries)
		command := fmt.Sprintf("command: [%s, agent, %s, %s]", os.Args[0], b.part, s.path("diary"))
		if b.sandboxed {
			fmt.Fprint(&text, s.sandbox(b))
			command += ", cwd: " + s.path("project")
		}
		if b.inbox {
			fmt.Fprint(&text, "inbox: {}}\n")
		} else if b.worker {
			fmt.Fprintf(&text, "idempotent: true, worker: {%s, count: 2, in_flight: %d}}\n", command, b.concurrency)
		} else {
			fmt.Fprintf(&text, "concurrency: %d, exec: {%s, output: %s}}\n", b.concurrency, command, cmp.Or(b.output, "envelope"))
		}
	}
	text.WriteString("groups:\n")
	for _, b := range s.binds {
		fmt.Fprintf(&text, "  - {name: %s, agents: [%s]}\n", b.part, b.part)
	}
	return []byte(text.String())
}

// processes lists what runs on this machine for this site: those that have
// its directory in their environment or in their arguments.
func (s *site) processes() (agents, others []int) {
	inRun := func(environment string) bool { return strings.Contains(environment, "MAILBOX_RUN_DIR="+s.dir) }
	agents = programs.Processes(func(_, environment string) bool { return inRun(environment) })
	others = programs.Processes(func(command, environment string) bool { return !inRun(environment) && strings.Contains(command, s.dir) })
	return agents, others
}

// end kills what is left: the keepers first, so that nobody sees the rest end.
func (s *site) end() {
	_, others := s.processes()
	programs.Kill(others)
	agents, _ := s.processes()
	programs.Kill(agents)
}
