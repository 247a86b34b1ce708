package daemon

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/rs/zerolog"

	"mailboxd/internal/access/api"
	"mailboxd/internal/access/client"
	"mailboxd/internal/operating/config"
	"mailboxd/internal/operating/runnerssh"
)

// hubDir is the directory of the hub of runners over ssh, in the state directory.
const hubDir = "hub"

// A sshLink keeps the runners over ssh, and says why one isn't connected.
type sshLink struct {
	links   *runnerssh.Links // nil without such runners
	runners []config.SSHRunner
	served  sync.Once
}

// openLink starts the hub of the runners over ssh. Without such runners it does nothing.
func openLink(ctx context.Context, cfg config.Config, state string, log zerolog.Logger) (*sshLink, error) {
	l := &sshLink{runners: cfg.Runners}
	if len(cfg.Runners) == 0 {
		return l, nil
	}
	var err error
	l.links, err = runnerssh.Start(ctx, runnerssh.Options{
		Runners: config.SSHRunners(cfg.Runners), Dir: filepath.Join(state, hubDir), Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("reach runners: %w", err)
	}
	return l, nil
}

// remote is the configuration of the owner: with runners over ssh, it is that of their hub.
func (l *sshLink) remote(r config.Remote) config.Remote {
	if l.links != nil {
		r.URL, r.Credentials = l.links.URL(), l.links.Credentials()
	}
	return r
}

// serve keeps the connections until the context ends.
func (l *sshLink) serve(ctx context.Context) (err error) {
	if l.links == nil {
		return nil
	}
	l.served.Do(func() { err = l.links.Serve(ctx) })
	return err
}

// close ends the hub, unless serve has done so.
func (l *sshLink) close(log zerolog.Logger) {
	if l.links == nil {
		return
	}
	l.served.Do(func() {
		if err := l.links.Close(); err != nil {
			log.Error().Err(err).Msg("cannot end mailboxd-hub")
		}
	})
}

// explain adds to what the owner knows of runners why ssh doesn't reach one.
func (l *sshLink) explain(known []client.Runner) []client.Runner {
	if l.links == nil {
		return known
	}
	failures, by := l.links.Failures(), map[string]int{}
	for i, r := range known {
		by[r.Name] = i
	}
	for _, r := range l.runners {
		i, ok := by[r.Name]
		if !ok {
			i = len(known)
			absent := client.Runner{Name: r.Name, Status: client.RunnerUnreachable, Reason: "not connected yet", Agents: []client.RunnerAgent{}}
			known = append(known, absent)
		}
		known[i].SSH = r.SSH
		f, failed := failures[r.Name]
		if good := known[i].Status == client.RunnerReady || known[i].Status == client.RunnerBusy; failed && !good {
			known[i].Status, known[i].Reason, known[i].Next = client.RunnerUnavailable, f.Reason, f.Next
		}
	}
	return known
}

// table is what the API has of the runners.
func (l *sshLink) table(known func() []client.Runner) api.RunnerTable {
	return api.RunnerTable{List: func() []client.Runner { return l.explain(known()) }}
}
