package doctor

import (
	"context"
	"fmt"
	"os"
	"slices"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/dial"
	"mailboxd/internal/running/external"
	"mailboxd/internal/running/services"
)

// agentService connects to the service of an agent, and sends it no task.
func (d *checker) agentService(ctx context.Context, b agent.Binding) (found, fix string, err error) {
	s := b.Service
	if s.Server != "" {
		return d.agentTool(ctx, b)
	}
	if _, set := os.LookupEnv(s.BearerEnv); s.BearerEnv != "" && !set {
		return "", "set it where mailboxd serve runs", fmt.Errorf("the variable %s with its token is not set here", s.BearerEnv)
	}
	if s.Mode == task.ServiceA2A {
		return d.agentCard(ctx, *s)
	}
	at, err := dial.Probe(ctx, s.URL)
	if err != nil {
		return "", "start the service, or correct http.url in " + d.Config, fmt.Errorf("%s can't be reached: %w", s.URL, err)
	}
	return fmt.Sprintf("%s, connects to %s", s.URL, at), "", nil
}

// agentCard reads the card of an agent of A2A. It sends no message.
func (d *checker) agentCard(ctx context.Context, s task.Service) (found, fix string, err error) {
	card, err := external.ReadCard(ctx, s, os.Getenv(s.BearerEnv))
	if err != nil {
		return "", "start the agent, or correct a2a.url in " + d.Config, fmt.Errorf("%s: %w", s.URL, err)
	}
	signed := "without a signature that can be verified"
	if card.Signed {
		signed = "with a signature that verifies"
	}
	return fmt.Sprintf("%q at %s, by %s, %s", card.Name, card.At.URL, card.At.ProtocolBinding, signed), "", nil
}

// agentTool starts the server of an agent's tool, and looks for the tool. It calls none.
func (d *checker) agentTool(ctx context.Context, b agent.Binding) (found, fix string, err error) {
	s := b.Service
	tools, err := agent.ToolsOf(ctx, b)
	if err != nil {
		return "", "correct the server in the section tools of " + d.Config, fmt.Errorf("the server %s doesn't list its tools: %w", s.Server, err)
	}
	if !slices.Contains(tools, s.Tool) {
		return "", "correct mcp.tool in " + d.Config, fmt.Errorf("the server %s has no tool %s; it has %q", s.Server, s.Tool, tools)
	}
	return fmt.Sprintf("the tool %s of %s, which has %d", s.Tool, s.Server, len(tools)), "", nil
}

// toolServers starts the servers whose tools an agent may call, and looks for these tools. It calls none.
func (d *checker) toolServers(ctx context.Context, b agent.Binding) {
	for _, s := range b.Servers {
		f := Finding{Check: "tools", Subject: b.ID, State: Bad}
		service, env := s.Tool("", "")
		has, err := agent.ToolsOf(ctx, agent.Binding{Service: service, Env: env})
		missing := services.Missing(s.ID, b.Tools, has)
		switch {
		case err != nil:
			f.Finding = fmt.Sprintf("the server %s doesn't list its tools: %v", s.ID, err)
			f.Hint = "correct the server in the section tools of " + d.Config
		case len(missing) > 0:
			f.Finding = fmt.Sprintf("the server %s has no tool %q; it has %q", s.ID, missing, has)
			f.Hint = "correct tools of the agent in " + d.Config
		default:
			f.State, f.Finding = OK, fmt.Sprintf("the server %s lists its tools, which are %d", s.ID, len(has))
		}
		d.note(f)
	}
}
