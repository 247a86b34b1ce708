package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"slices"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/broker"
	"mailboxd/internal/running/brokered"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/running/services"
	"mailboxd/internal/sandboxing/sandbox"
)

// divideTools divides a list into the tools of the program and those that a broker offers it. The first
// is nil for nil: they are not limited.
func (b Binding) divideTools(tools []string) (own, brokered []string) {
	own = slices.Clone(tools)
	return slices.DeleteFunc(own, func(entry string) bool {
		offered := len(services.Named(b.Servers, []string{entry})) > 0
		if offered {
			brokered = append(brokered, entry)
		}
		return offered
	}), brokered
}

// addBroker adds the tool broker of a run to its Spec, if it may use tools of MCP servers.
func addBroker(s *runner.Spec, j task.Job, g *Agent, boxed bool) error {
	tools := offered(g, j)
	if len(tools.List) == 0 {
		return nil
	}
	c, err := tools.Config(j, j.Dir, rand.Text())
	if err != nil {
		return err
	}
	c.Boxed = boxed
	text, err := c.Encode()
	if err != nil {
		return err
	}
	err = errors.Join(create(inDir(j, broker.TokenFile), []byte(c.Token+"\n")), create(inDir(j, broker.AnswersFile), nil))
	if err = errors.Join(err, writeServers(g, j, c.Token)); err != nil {
		return err
	}
	s.Broker, s.Env = text, append(s.Env, sandbox.ToolsTokenVariable+"="+inDir(j, broker.TokenFile))
	if variables := recipes[g.binding.Profile].brokerEnv; variables != nil && g.binding.byRecipe() {
		s.Env = append(s.Env, variables(c.Token)...)
	}
	return nil
}

// offered returns the tools of a broker of a run.
func offered(g *Agent, j task.Job) brokered.Tools {
	t := brokered.Tools{Servers: g.binding.Servers, Environment: func(list []string) ([]string, error) {
		env, wrong := inherit(list, os.LookupEnv)
		if wrong != nil {
			return nil, wrong
		}
		return env, nil
	}}
	if _, t.List = g.binding.divideTools(j.Tools); g.opts.Own.State != "" {
		t.Known = brokered.KnownDir(g.opts.Own.State)
	}
	return t
}

// makeCalls makes the calls of tools for which the messages of an ended run ask.
func makeCalls(ctx context.Context, g *Agent, j task.Job, o task.Outcome) task.Outcome {
	b := g.binding
	limits := runner.Spec{Timeout: g.timeout(j), Deadline: j.Deadline, MaxOutput: b.MaxOutput, Grace: b.Grace}
	return brokered.Caller{Tools: offered(g, j), Job: j, Limits: limits, Run: g.opts.Run, Await: g.await}.Make(ctx, o)
}

// addBrokerLevel says who held the tools of MCP servers: mailboxd, which is certain only if the agent can't
// reach its files and processes.
func addBrokerLevel(j task.Job, levels envelope.Levels, exit task.Exit) {
	if !brokered.Has(j) {
		return
	}
	levels[envelope.ControlMCPTools] = envelope.LevelDaemonUnsandboxed
	if exit.Sandboxed {
		levels[envelope.ControlMCPTools] = envelope.LevelDaemon
	}
}
