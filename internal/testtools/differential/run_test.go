package differential_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
)

// daemons are the goroutines that wait for processes.
var daemons sync.WaitGroup

// play runs a scenario with one build, in a directory, and returns what could be seen
// after each step, and at last.
func (s scenario) play(ctx context.Context, dir, daemon string) (seen []record, err error) {
	site, err := newSite(dir, daemon, s.limits)
	if err != nil {
		return nil, err
	}
	defer func() {
		site.end()
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	if err := site.start(ctx); err != nil {
		return nil, err
	}
	w := newWitness(site)
	for n, step := range s.steps {
		said, err := site.perform(ctx, step)
		if err == nil && site.cmd != nil {
			err = site.settle(ctx, s.limits)
		}
		if err == nil {
			err = w.look(ctx, step.String(), said)
		}
		if err != nil {
			return w.records, fmt.Errorf("step %d, %s: %w", n+1, step, err)
		}
	}
	if err := s.finish(ctx, site, w); err != nil {
		return w.records, fmt.Errorf("at the end: %w", err)
	}
	return w.records, nil
}

// finish lets all runs that wait go on, ends the daemon, has another one do what is left,
// and looks at everything.
func (s scenario) finish(ctx context.Context, site *site, w *witness) error {
	for {
		var all page
		if err := site.get(ctx, "/v1/tasks?limit=1000&state=running&revisions=all", &all); err != nil {
			return err
		}
		for _, t := range all.Tasks {
			if _, err := site.word(ctx, t.ID, "ok"); err != nil {
				return err
			}
		}
		if err := site.settle(ctx, s.limits); err != nil {
			return err
		}
		if len(all.Tasks) == 0 {
			break
		}
	}
	if err := w.look(ctx, "the runs that waited go on", ""); err != nil {
		return err
	}
	if err := w.lookAtAll(ctx); err != nil {
		return err
	}
	if err := site.stop(syscall.SIGTERM); err != nil {
		return err
	}
	said := site.run("serve", "--once")
	return w.lookAtFiles("serve --once", said)
}

// perform has a step happen, and returns what the build said to it.
func (s *site) perform(ctx context.Context, step step) (string, error) {
	a := append(step.args, "", "", "")
	switch step.verb {
	case "append":
		return "", s.append(a[0], a[1])
	case "cli":
		return s.run(s.unseen(step.args)...), nil
	case "post":
		return s.say(ctx, a[0], a[1])
	case "word":
		return s.word(ctx, a[0], a[1])
	case "place":
		return s.putFile(a[0], a[1], a[2])
	case "claim":
		return s.claim(ctx, a[0])
	case "renew":
		return s.say(ctx, "/v1/tasks/"+a[0]+"/renew", fmt.Sprintf(`{"agent_id":%q,"lease":%q}`, a[1], s.lease("lease")))
	case "submit":
		return s.say(ctx, "/v1/tasks/"+a[0]+"/submit", fmt.Sprintf(`{"agent_id":%q,"lease":%q,"result":%s}`, a[1], s.lease(a[2]), a[3]))
	case "down":
		return "", s.stop(signalOf(a[0]))
	case "up":
		return "", s.start(ctx)
	case "restart":
		if err := s.stop(signalOf(a[0])); err != nil {
			return "", err
		}
		return "", s.start(ctx)
	}
	return "", fmt.Errorf("there is no verb %q", step.verb)
}

func signalOf(name string) syscall.Signal {
	if name == "TERM" {
		return syscall.SIGTERM
	}
	return syscall.SIGKILL
}

// conversation finds the conversation that a message is part of.
var conversation = regexp.MustCompile(`"cid":"([^"]+)"|"type":"[a-z_]+","task_id":"([^"]+)"`)

func (s *site) append(name, text string) error {
	for _, m := range conversation.FindAllStringSubmatch(text, -1) {
		s.threads[cmp.Or(m[1], m[2])] = true
	}
	file, err := os.OpenFile(s.path("box/tasks/"+name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// unseen has an approval be of whatever is asked. Earlier builds have no flag for it, and approve
// nothing else.
func (s *site) unseen(args []string) []string {
	if args[0] != "approve" || !strings.Contains(s.run("approve", "--help"), "--unseen") {
		return args
	}
	return append(slices.Clone(args), "--unseen")
}

// longestRun is after how long a command is killed: serve --once waits for an agent that nobody tells to
// go on, and for budget that a task in an inbox has reserved.
const longestRun = time.Minute

// run runs a command of the build and returns its exit code and what it printed.
func (s *site) run(args ...string) string {
	cmd := s.command(args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Start()
	if err == nil {
		late := time.AfterFunc(longestRun, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		err = cmd.Wait()
	}
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return err.Error()
	}
	return fmt.Sprintf("exit code %d\n%s%s", cmd.ProcessState.ExitCode(), &out, &complaints)
}

// say sends a request that may change something. Without a daemon nothing is said.
func (s *site) say(ctx context.Context, path, body string) (string, error) {
	if s.cmd == nil {
		return "nobody is there", nil
	}
	code, text, err := s.ask(ctx, http.MethodPost, path, body)
	return fmt.Sprintf("status %d\n%s", code, text), err
}

func (s *site) claim(ctx context.Context, agent string) (string, error) {
	said, err := s.say(ctx, "/v1/claim", fmt.Sprintf(`{"agent_id":%q}`, agent))
	var claimed struct {
		Lease string `json:"lease"`
	}
	_, text, _ := strings.Cut(said, "\n")
	if json.Unmarshal([]byte(text), &claimed) == nil && claimed.Lease != "" {
		s.leases = append(s.leases, claimed.Lease)
	}
	return said, err
}

// lease is the lease that was handed out last.
func (s *site) lease(which string) string {
	if which == "none" || len(s.leases) == 0 {
		return ""
	}
	return s.leases[len(s.leases)-1]
}

// word writes a word into the gate of a task, if its run waits there. Its mark is taken away
// before, so that the run counts as one that goes on by itself.
func (s *site) word(ctx context.Context, id, word string) (string, error) {
	marks, err := filepath.Glob(s.path("marks/" + id + ".[0-9]*"))
	if err != nil || len(marks) == 0 || !s.runs(id) {
		return "no run waits for a word", err
	}
	for _, m := range marks {
		if err := os.Remove(m); err != nil {
			return "", err
		}
	}
	return "told", s.await(ctx, "a run to read its word", func() (bool, error) {
		gate, err := os.OpenFile(s.path("gates/"+id), os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if errors.Is(err, syscall.ENXIO) {
			return !s.runs(id), nil // it has ended meanwhile, or opens its gate soon
		}
		if err != nil {
			return false, err
		}
		_, err = gate.WriteString(word + "\n")
		return true, errors.Join(err, gate.Close())
	})
}

// putFile puts a result file in its place as another program would, unless there is one.
func (s *site) putFile(id, kind, agent string) (string, error) {
	text := fmt.Sprintf(`{"schema_version":"1.0","task_id":%q,"agent_id":%q,"status":%q,"confidence":null,"output":{"summary":"placed","actions":[]},"artifact_refs":[],"cost_used":{"tokens":0,"usd_cents":0},"time_used":{"started_at":"2026-01-01T00:00:00Z","finished_at":"2026-01-01T00:00:00Z","wall_ms":0},"needs_review":{"required":false,"reason":null},"error":{"kind":null,"message":null}}`,
		id, agent, kind)
	if kind == "nonsense" {
		text = "not a result"
	}
	aside := s.path("placed")
	if err := os.WriteFile(aside, []byte(text), 0o600); err != nil {
		return "", err
	}
	err := os.Link(aside, s.path("box/results/"+id+".json"))
	if errors.Is(err, os.ErrExist) {
		return "there is one already", os.Remove(aside)
	}
	return "placed", errors.Join(err, os.Remove(aside))
}
