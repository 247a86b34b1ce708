package runnerstorm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailboxd/internal/testtools/programs"
)

// results are the result files that were seen, as they were seen first.
type results struct {
	dir   string
	first map[string][]byte // by task
}

// look reads the results that are new. Each is whole from the moment it is there.
func (r *results) look() error {
	files, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		id, ok := strings.CutSuffix(file.Name(), ".json")
		if !ok || r.first[id] != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(r.dir, file.Name()))
		if err != nil {
			return err
		}
		if said, err := resultOf(text); err != nil || said.TaskID != id {
			return fmt.Errorf("the result of %s is half or another's: %w\n%s", id, err, text)
		}
		r.first[id] = text
	}
	return nil
}

// A result is what the check needs of a result file.
type result struct {
	TaskID string `json:"task_id"`
	Status string `json:"status"`
	Error  struct {
		Kind    string `json:"kind"`
		Message string `json:"message"`
	} `json:"error"`
}

func resultOf(text []byte) (r result, err error) {
	err = json.Unmarshal(text, &r)
	return r, err
}

// check compares results with how often agents began.
func (s *storm) check(t *testing.T, seen *results) {
	t.Helper()
	begun, agents, kinds := s.begun(t), s.agents(t), map[string]int{}
	for id, text := range seen.first {
		now, err := os.ReadFile(filepath.Join(seen.dir, id+".json"))
		if err != nil || !bytes.Equal(now, text) {
			t.Errorf("the result of %s has changed (%v):\n%s\n%s", id, err, text, now)
		}
		said, err := resultOf(text)
		if err != nil {
			t.Error(err)
		}
		kinds[said.Status+" "+said.Error.Kind]++
		runs := begun[id]
		if said.Status == "ok" && len(runs) == 0 {
			t.Errorf("%s is ok, and its agent never began", id)
		}
		if said.Status != "ok" && said.Error.Kind != "run_lost" {
			t.Errorf("%s ended with %s: %s", id, said.Error.Kind, said.Error.Message)
		}
		if len(runs) > 1 && agents[id] != "again" {
			t.Errorf("%s of the agent %s began in %d runs: %v", id, agents[id], len(runs), runs)
		}
		for run, times := range runs {
			if times != 1 {
				t.Errorf("run %s of %s began %d times", run, id, times)
			}
		}
	}
	t.Logf("seed %d: results: %v", *seed, kinds)
	if len(seen.first) != *tasks {
		t.Errorf("%d results of %d tasks", len(seen.first), *tasks)
	}
}

// begun counts beginnings by task and run.
func (s *storm) begun(t *testing.T) map[string]map[string]int {
	t.Helper()
	files, err := os.ReadDir(s.path("begun"))
	if err != nil {
		t.Fatal(err)
	}
	begun := map[string]map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(s.path("begun", file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		id, run, _ := strings.Cut(file.Name(), ".")
		if begun[id] == nil {
			begun[id] = map[string]int{}
		}
		begun[id][run] = bytes.Count(text, []byte("\n"))
	}
	return begun
}

// agents are the agents of the tasks.
func (s *storm) agents(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(s.path("box/tasks/storm.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	agents := map[string]string{}
	for line := range bytes.Lines(text) {
		var task struct {
			TaskID string `json:"task_id"`
			Agent  string `json:"target_agent"`
		}
		if err := json.Unmarshal(line, &task); err != nil {
			t.Fatal(err)
		}
		agents[task.TaskID] = task.Agent
	}
	return agents
}

// open fails if a task isn't finished for the owner.
func (s *storm) open(t *testing.T) {
	t.Helper()
	ps := exec.Command(mailboxd, "--config", s.path("owner.yaml"), "ps", "--json", "--state", "received,queued,waiting,held,running,review")
	ps.Env = s.environment()
	if out, err := ps.Output(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("tasks that are not finished (%v):\n%s", err, out)
	}
}

// none fails if a process is left. Keepers end by themselves, soon after the last program that they served.
func (s *storm) none(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; <-time.After(100 * time.Millisecond) {
		left := s.processes()
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("processes are left: %v", slices.Collect(maps.Values(left)))
			return
		}
	}
}

// end kills what is left.
func (s *storm) end() {
	for pid := range s.processes() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// processes are those that have the directory of the storm in their arguments or environment, with their arguments.
func (s *storm) processes() map[int]string {
	left := map[int]string{}
	for _, pid := range programs.Processes(func(command, environment string) bool {
		return strings.Contains(command, s.dir) || strings.Contains(environment, s.dir)
	}) {
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		left[pid] = strings.ReplaceAll(string(command), "\x00", " ")
	}
	return left
}

func appendText(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
