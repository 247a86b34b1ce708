package runnerstorm

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"mailboxd/internal/testtools/slowtest"
)

// patience is how long the tasks that are left may take, once nothing is cut or killed any more.
const patience = 3 * time.Minute

// ownerPoints and runnerPoints are where programs die. Those of a runner are also those of its keeper.
var (
	ownerPoints = []string{
		"accepted", "route", "intent", "moved", "written-uncommitted", "outcome-fetched", "result-put", "put-marked", "run-settled",
	}
	runnerPoints = []string{
		"journal-uncommitted", "journal-written", "request-written", "output-created", "spawned", "meta-written", "exited", "exit-aside",
		"exit-written",
	}
)

// A storm is an owner, a hub and two runners in a directory, and what is done to them.
type storm struct {
	dir     string
	owner   *actor
	hub     *actor
	runners []*actor
	proxies []*proxy

	mu     sync.Mutex
	deaths map[string]int // of each program
}

func TestEachTaskHasOneResultAndBeginsOnceWhileProgramsAreKilledAndConnectionsCut(t *testing.T) {
	slowtest.Require(t, "it kills programs and cuts connections for a minute")
	t.Logf("seed %d", *seed)
	s := newStorm(t)
	began := time.Now()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	actors, acting := errgroup.WithContext(ctx)
	for _, a := range s.actors() {
		actors.Go(func() error { return a.act(acting) })
	}
	seen := &results{dir: s.path("box/results"), first: map[string][]byte{}}
	trouble, troubled := errgroup.WithContext(acting)
	trouble.Go(func() error { return s.send(troubled, seen) })
	trouble.Go(func() error { return s.cut(troubled) })
	trouble.Go(func() error { return s.kill(troubled) })
	if err := trouble.Wait(); err != nil {
		t.Errorf("storm: %v", err)
	}
	took := time.Since(began)
	for _, a := range s.actors() {
		a.spare()
	}
	if err := s.settle(acting, seen); err != nil {
		t.Error(err)
	}
	after := time.Since(began) - took
	t.Logf("%d tasks in %.0f s and %.0f s after it; %d cuts; deaths: %v", len(seen.first), took.Seconds(), after.Seconds(), *cuts, s.counted())
	s.open(t)
	stop()
	if err := actors.Wait(); err != nil {
		t.Error(err)
	}
	s.check(t, seen)
	s.none(t)
}

// newStorm makes the keys of the hub, and the configuration of all programs.
func newStorm(t *testing.T) *storm {
	t.Helper()
	dir, err := os.MkdirTemp("", "storm-") // shorter than that of the test, for the sockets
	if err != nil {
		t.Fatal(err)
	}
	s := &storm{dir: dir, deaths: map[string]int{}}
	t.Cleanup(func() {
		if s.end(); !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	for _, dir := range []string{"box", "box/tasks", "box/results", "begun", "tmp", "home"} {
		if err := os.MkdirAll(s.path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	init := exec.Command(hub, "init", "--dir", s.path("hub"), "--listen", address, "--host", "127.0.0.1", "--enroll", "r1", "--enroll", "r2")
	if out, err := init.CombinedOutput(); err != nil {
		t.Fatalf("make keys: %v\n%s", err, out)
	}
	for range 3 {
		s.proxies = append(s.proxies, newProxy(t, address))
	}
	s.hub = s.actor("hub", nil, hub, "serve", "--dir", s.path("hub"))
	config := s.write(t, "owner.yaml", fmt.Sprintf(ownerConfig, s.dir, s.proxies[0].address))
	s.owner = s.actor("owner", ownerPoints, mailboxd, "--config", config, "serve")
	for i, name := range []string{"r1", "r2"} {
		config := s.write(t, name+".yaml", strings.NewReplacer("DIR", s.dir, "NAME", name).Replace(runnerConfig))
		s.runners = append(s.runners, s.actor(name, runnerPoints, mailboxd, "runner", "--connect", "nats://"+s.proxies[1+i].address,
			"--credentials", s.path("hub/credentials", name+".nk"), "--config", config))
	}
	return s
}

const ownerConfig = `
root: %[1]s/box
state_dir: %[1]s/owner-state
remote: {url: "nats://%[2]s", name: mailboxd, credentials: %[1]s/hub/hub.nk, lease: 30s}
notify: {waits: []}
agents:
  - {id: quick, remote: {}}
  - {id: slow, remote: {}}
  - {id: again, remote: {}, idempotent: true, retries: 9, backoff: 100ms}
`

// An agent counts its beginnings in a file for each of its runs.
const runnerConfig = `
name: NAME
slots: 6
state: DIR/NAME-state
agents:
  - id: quick
    exec: {command: [sh, -c, 'echo NAME >>"DIR/begun/$MAILBOX_TASK_ID.$MAILBOX_RUN_ID"; echo did it'], output: text}
  - id: slow
    exec: {command: [sh, -c, 'echo NAME >>"DIR/begun/$MAILBOX_TASK_ID.$MAILBOX_RUN_ID"; sleep 0.7; echo did it'], output: text}
  - id: again
    idempotent: true
    exec: {command: [sh, -c, 'echo NAME >>"DIR/begun/$MAILBOX_TASK_ID.$MAILBOX_RUN_ID"; sleep 0.2; echo did it'], output: text}
`

func (s *storm) actor(name string, points []string, command ...string) *actor {
	var sum uint64
	for _, b := range []byte(name) {
		sum = sum<<8 | uint64(b)
	}
	return &actor{storm: s, name: name, command: command, points: points, dice: chance(sum)}
}

func (s *storm) actors() []*actor { return append([]*actor{s.hub, s.owner}, s.runners...) }

func (s *storm) path(name ...string) string {
	return filepath.Join(append([]string{s.dir}, name...)...)
}

func (s *storm) write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.path(name)
}

// environment is what the programs have of ours: nothing that the person who runs the tests has configured.
func (s *storm) environment() []string {
	return []string{"HOME=" + s.path("home"), "TMPDIR=" + s.path("tmp"), "XDG_RUNTIME_DIR=" + s.path("tmp"), "PATH=" + os.Getenv("PATH")}
}

// died counts a death.
func (s *storm) died(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaths[name]++
}

// counted returns the deaths until now. Programs still die.
func (s *storm) counted() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.deaths)
}

func (s *storm) dead() (all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.deaths {
		all += n
	}
	return all
}

// send appends tasks for all agents, a few at a time, and never more than 60 that have no result.
func (s *storm) send(ctx context.Context, seen *results) error {
	dice := chance(1)
	for sent := 0; sent < *tasks; {
		if err := seen.look(); err != nil {
			return err
		}
		var lines strings.Builder
		for n := min(1+dice.IntN(8), *tasks-sent, 60-(sent-len(seen.first))); n > 0; n-- {
			agent := []string{"quick", "slow", "again"}[dice.IntN(3)]
			fmt.Fprintf(&lines, `{"schema_version":"1.0","task_id":"t%d","requester_id":"tester","target_agent":%q,"target_role":"executor",`+
				`"task_type":"work","description":"a task","input":{"refs":[],"payload":{}}}`+"\n", sent, agent)
			sent++
		}
		if err := appendText(s.path("box/tasks/storm.jsonl"), lines.String()); err != nil {
			return err
		}
		if !pause(ctx, 50*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// cut cuts connections of the owner and the runners, mostly for moments, and sometimes for longer than a lease.
func (s *storm) cut(ctx context.Context) error {
	dice := chance(2)
	for n := range *cuts {
		length := time.Duration(dice.IntN(400)) * time.Millisecond
		switch {
		case n%100 == 60:
			length = 40 * time.Second
		case n%10 == 5:
			length = time.Duration(1+dice.IntN(3)) * time.Second
		}
		s.proxies[dice.IntN(len(s.proxies))].cut(length)
		if !pause(ctx, time.Duration(500+dice.IntN(2000))*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// kill kills programs until there were enough deaths, of which some are at fault points.
func (s *storm) kill(ctx context.Context) error {
	dice := chance(3)
	for s.dead() < *kills {
		if !pause(ctx, time.Duration(500+dice.IntN(4000))*time.Millisecond) {
			return context.Cause(ctx)
		}
		switch n := dice.IntN(8); {
		case n < 1:
			s.hub.kill()
		case n < 3:
			s.owner.kill()
		case n < 6:
			s.runners[dice.IntN(2)].kill()
		default:
			r := s.runners[dice.IntN(2)]
			for _, pid := range r.keepers() {
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					s.died("keeper of " + r.name)
				}
			}
		}
	}
	return nil
}

// settle waits until each task has a result.
func (s *storm) settle(ctx context.Context, seen *results) error {
	for end := time.Now().Add(patience); ; {
		if err := seen.look(); err != nil {
			return err
		}
		if len(seen.first) >= *tasks {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d tasks have a result %v after the storm", len(seen.first), *tasks, patience)
		}
		if !pause(ctx, 100*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// pause reports false if ctx ended.
func pause(ctx context.Context, length time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(length):
		return true
	}
}
