package config

import (
	"fmt"
	"slices"

	"mailboxd/internal/operating/runnerssh"
)

// SSHRunner is a runner that the daemon reaches with ssh, without a hub of one's own.
type SSHRunner struct {
	Name string `mapstructure:"name"` // of the runner
	SSH  string `mapstructure:"ssh"`  // a host of ~/.ssh/config, or user@host
}

// checkRunners refuses runners that can't be reached with ssh.
func checkRunners(runners []SSHRunner, remote Remote) (checks []error) {
	for i, r := range runners {
		key := fmt.Sprintf("runners[%d]", i)
		switch {
		case !RemoteNames.MatchString(r.Name) || r.Name == "owner" || r.Name == "hub":
			checks = append(checks, wrong(key+".name", remoteName, r.Name))
		case slices.IndexFunc(runners, func(other SSHRunner) bool { return other.Name == r.Name }) != i:
			checks = append(checks, wrong(key+".name", "%q is there twice", r.Name))
		}
		if err := runnerssh.CheckDestination(r.SSH); err != nil {
			checks = append(checks, wrong(key+".ssh", "%v", err))
		}
	}
	if len(runners) > 0 && remote.URL != "" {
		checks = append(checks, wrong("runners", "have a hub of their own; remove them, or remote.url"))
	}
	return checks
}

// SSHRunners are the runners that the daemon reaches with ssh.
func SSHRunners(runners []SSHRunner) (all []runnerssh.Runner) {
	for _, r := range runners {
		all = append(all, runnerssh.Runner{Name: r.Name, Destination: r.SSH})
	}
	return all
}
