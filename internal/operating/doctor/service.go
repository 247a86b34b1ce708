package doctor

import (
	"context"
	"fmt"
	"os"

	"mailboxd/internal/running/agent"
	"mailboxd/internal/running/external"
)

// agentService connects to the service of an agent, and sends it no task.
func (d *checker) agentService(ctx context.Context, b agent.Binding) (found, fix string, err error) {
	s := b.Service
	if _, set := os.LookupEnv(s.BearerEnv); s.BearerEnv != "" && !set {
		return "", "set it where mailboxd serve runs", fmt.Errorf("the variable %s with its token is not set here", s.BearerEnv)
	}
	at, err := external.Probe(ctx, *s)
	if err != nil {
		return "", "start the service, or correct http.url in " + d.Config, fmt.Errorf("%s can't be reached: %w", s.URL, err)
	}
	return fmt.Sprintf("%s, connects to %s", s.URL, at), "", nil
}
