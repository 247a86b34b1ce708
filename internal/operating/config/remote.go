package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// DefaultRemoteName is the name of an owner that has none.
const DefaultRemoteName = "mailboxd"

// Remote is how runners on other machines are reached.
type Remote struct {
	URL         string        `mapstructure:"url"`         // of a NATS server; "": there are no runners, but those of ssh
	Name        string        `mapstructure:"name"`        // of the owner, in the subjects of its messages
	Credentials string        `mapstructure:"credentials"` // a file
	Lease       time.Duration `mapstructure:"lease"`       // how long a runner goes on with idempotent runs without reaching the owner
	Unreachable time.Duration `mapstructure:"unreachable"` // after which a run of a runner that can't be reached is lost
}

// RemoteAgent is where an agent runs that is on other machines.
type RemoteAgent struct {
	Needs   []string `mapstructure:"needs"`   // capabilities that the runner has to announce
	Runners []string `mapstructure:"runners"` // patterns of names; empty: every runner that has the agent
}

// RemoteNames is what names of owners and runners look like: they are parts of subjects, buckets and arguments of ssh.
var RemoteNames = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// The least that remote.lease can be, and the most. A runner renews leases each 10 seconds, or 15 if an answer is late.
const minLease, maxLease = 30 * time.Second, time.Hour

const remoteName = "%q is no name: use up to 32 of a-z, 0-9, - and _, a letter or digit first"

// check refuses what no runner can be reached with.
func (r Remote) check() (checks []error) {
	if !RemoteNames.MatchString(r.Name) {
		checks = append(checks, wrong("remote.name", remoteName, r.Name))
	}
	if r.Lease < minLease || r.Lease > maxLease {
		checks = append(checks, wrong("remote.lease", "must be from %v to %v", minLease, maxLease))
	}
	if r.Unreachable < r.Lease {
		checks = append(checks, wrong("remote.unreachable", "must be at least remote.lease, %v", r.Lease))
	}
	checks = append(checks, expanded("remote.credentials", r.Credentials))
	if r.URL != "" {
		checks = append(checks, checkServerURL("remote.url", r.URL))
	}
	return checks
}

// checkServerURL refuses what is no URL of a NATS server.
func checkServerURL(key, text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || !slices.Contains([]string{"nats", "tls"}, u.Scheme):
		return wrong(key, "%q is no URL of a NATS server, such as tls://hub.example.com:4222", text)
	case u.User != nil:
		return wrong(key, "has a password or a token: write it into the file of remote.credentials")
	case u.Scheme == "nats" && !slices.Contains([]string{"127.0.0.1", "::1", "localhost"}, u.Hostname()):
		return wrong(key, "%q is not on this machine, so it needs TLS: write tls://%s", text, u.Host)
	}
	return nil
}

// checkRemote refuses an agent on other machines that no runner can have.
func (e Entry) checkRemote(key string) (checks []error) {
	if e.Remote == nil {
		if e.Worktree {
			checks = append(checks, wrong(key+".worktree",
				"is for an agent with remote; for a program of this machine write exec: {worktree: true}"))
		}
		return checks
	}
	for i, need := range e.Remote.Needs {
		if need == "" || strings.ContainsFunc(need, func(r rune) bool { return r <= ' ' || r == ',' }) {
			checks = append(checks, wrong(fmt.Sprintf("%s.remote.needs[%d]", key, i), "%q is no capability, such as gpu", need))
		}
	}
	for i, text := range e.Remote.Runners {
		at := fmt.Sprintf("%s.remote.runners[%d]", key, i)
		if text == "" {
			checks = append(checks, wrong(at, "is empty; write the name of a runner, or a pattern such as gpu-*"))
		}
		checks = append(checks, pattern(at, text))
	}
	return checks
}
