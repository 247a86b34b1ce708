package registry

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/sandbox"
)

func TestAPlanIsNamedByAllThatAPersonAgreesTo(t *testing.T) {
	tokens := int64(3000)
	asked := envelope.Task{Hash: "h1"}
	binding := agent.Binding{Command: []string{"/bin/sh", "{{.TaskFile}}"}, Cwd: "/src"}
	terms := task.Terms{Tools: []string{"http"}, Budget: envelope.Budget{Tokens: &tokens}}
	names := []string{new(agent.Planner).PlanOf(asked, binding, terms, "").Digest()}
	if again := new(agent.Planner).PlanOf(asked, binding, terms, "").Digest(); again != names[0] {
		t.Errorf("the same plan is named %s and %s", names[0], again)
	}
	fewer := int64(2999)
	for what, change := range map[string]func(*envelope.Task, *agent.Binding, *task.Terms){
		"the request": func(t *envelope.Task, _ *agent.Binding, _ *task.Terms) { t.Hash = "h2" },
		"an argument": func(_ *envelope.Task, b *agent.Binding, _ *task.Terms) { b.Command = []string{"/bin/sh", "-c"} },
		"its division": func(_ *envelope.Task, b *agent.Binding, _ *task.Terms) {
			b.Command = []string{"/bin/sh {{.TaskFile}}"}
		},
		"the executable": func(_ *envelope.Task, b *agent.Binding, _ *task.Terms) {
			b.Command = []string{"/bin/ls", "{{.TaskFile}}"}
		},
		"the sandbox": func(_ *envelope.Task, b *agent.Binding, _ *task.Terms) { b.Sandbox.Profile = sandbox.Workspace },
		"a path in the sandbox": func(_ *envelope.Task, b *agent.Binding, _ *task.Terms) {
			b.Sandbox.Profile, b.Sandbox.Write = sandbox.Workspace, []sandbox.Path{{Name: "/opt", Real: "/opt"}}
		},
		"the memory of the sandbox": func(_ *envelope.Task, b *agent.Binding, _ *task.Terms) {
			b.Sandbox.Profile, b.Sandbox.Memory = sandbox.Workspace, 1<<30
		},
		"the hosts that may see it": func(_ *envelope.Task, b *agent.Binding, _ *task.Terms) {
			b.Sandbox.Profile, b.Sandbox.Egress.Internal = sandbox.Workspace, sandbox.Hosts{"example.com"}
		},
		"the task file of its run": func(_ *envelope.Task, b *agent.Binding, _ *task.Terms) {
			b.Sandbox.Profile, b.Sandbox.Tasks = sandbox.Workspace, true
		},
		"the service": func(_ *envelope.Task, b *agent.Binding, _ *task.Terms) {
			b.Service = &task.Service{URL: "https://a.example.com"}
		},
		"the address of the service": func(_ *envelope.Task, b *agent.Binding, _ *task.Terms) {
			b.Service = &task.Service{URL: "https://b.example.com"}
		},
		"the way of the service": func(_ *envelope.Task, b *agent.Binding, _ *task.Terms) {
			b.Service = &task.Service{URL: "https://b.example.com", Mode: task.ServicePoll}
		},
		"the directory": func(_ *envelope.Task, b *agent.Binding, _ *task.Terms) { b.Cwd = "/" },
		"the worker": func(_ *envelope.Task, b *agent.Binding, _ *task.Terms) {
			b.Worker = &agent.Worker{Command: []string{"w"}}
		},
		"the tools":     func(_ *envelope.Task, _ *agent.Binding, terms *task.Terms) { terms.Tools = []string{} },
		"no tools said": func(_ *envelope.Task, _ *agent.Binding, terms *task.Terms) { terms.Tools = nil },
		"the budget":    func(_ *envelope.Task, _ *agent.Binding, terms *task.Terms) { terms.Budget.Tokens = &fewer },
		"no budget":     func(_ *envelope.Task, _ *agent.Binding, terms *task.Terms) { terms.Budget = envelope.Budget{} },
	} {
		task, binding, terms := asked, binding, terms
		change(&task, &binding, &terms)
		name := new(agent.Planner).PlanOf(task, binding, terms, "").Digest()
		if slices.Contains(names, name) {
			t.Errorf("with another %s the plan has the name of another one", what)
		}
		names = append(names, name)
	}
}

func TestACommandThatNobodyApprovedIsNotStarted(t *testing.T) {
	started := 0
	agents, err := agent.New([]agent.Binding{{ID: "a", Command: []string{"/bin/true"}}}, agent.Options{
		Run: func(context.Context, runner.Spec, func(runner.Process)) (task.Exit, error) {
			started++
			return task.Exit{}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	reg := &Registry{}
	reg.current.Store(&snapshot{agents: agents})
	job := task.Job{Task: envelope.Task{ID: "t1", Agent: "a", Hash: "h"}, Dir: t.TempDir()}
	agreed := func(command string) string {
		return new(agent.Planner).PlanOf(job.Task, agent.Binding{Command: []string{command}}, job.Terms, "").Digest()
	}
	job.Digest = agreed("/bin/false")
	if o := reg.run(t.Context(), job, nil); o.Void == nil || started != 0 {
		t.Errorf("run(agreed to another command) = %+v, started %d times; want it void", o, started)
	}
	job.Digest = agreed("/bin/true")
	if o := reg.run(t.Context(), job, nil); o.Void != nil || started != 1 {
		t.Errorf("run(agreed to) = %+v, started %d times; want it run", o, started)
	}
}

func TestAProgramThatChangedAfterTheLastJudgementIsNotStarted(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "tool")
	write := func(content string) {
		if err := os.WriteFile(tool, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	started := 0
	agents, err := agent.New([]agent.Binding{{ID: "a", Command: []string{tool}}}, agent.Options{
		Run: func(context.Context, runner.Spec, func(runner.Process)) (task.Exit, error) {
			started++
			return task.Exit{}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	reg := &Registry{}
	reg.current.Store(&snapshot{agents: agents})
	job := task.Job{Task: envelope.Task{ID: "t1", Agent: "a", Hash: "h"}, Dir: t.TempDir()}
	write("one")
	plan := reg.plans.PlanOf(job.Task, reg.binding("a"), job.Terms, "")
	job.Digest, job.Plan = plan.Digest(), plan.Encode()
	write("two")
	if o := reg.run(t.Context(), job, nil); o.Void == nil || started != 0 || !strings.Contains(o.Void.Error(), "files."+tool+": ") {
		t.Errorf("run(another program) = %+v, started %d times; want it void, with the difference", o, started)
	}
	write("one")
	if o := reg.run(t.Context(), job, nil); o.Void != nil || started != 1 {
		t.Errorf("run(the approved program) = %+v, started %d times; want it run", o, started)
	}
}
