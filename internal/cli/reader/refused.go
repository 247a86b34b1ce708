package reader

import (
	"mailboxd/internal/access/client"
	"mailboxd/internal/running/runner"
)

// refusedHosts returns the hosts that the gate of a run refused; none without a gate.
func refusedHosts(dir string) (all []client.RefusedHost) {
	for _, host := range runner.RefusedHosts(dir) {
		all = append(all, client.RefusedHost(host))
	}
	return all
}
