// Package doctor checks the mailbox, the state, the agents and the machine, and says what
// to do about each problem. It changes nothing.
package doctor

import (
	"context"
	"fmt"

	"mailboxd/internal/access/client"
	"mailboxd/internal/operating/sealing"
	"mailboxd/internal/running/agent"
)

// A Finding is the outcome of a check. Scripts rely on names and states.
type Finding struct {
	Check   string `json:"check"`
	Subject string `json:"subject,omitempty"` // of several things that one check looks at
	State   Grade  `json:"state"`
	Finding string `json:"finding"`
	Hint    string `json:"hint,omitempty"` // what to do about it
}

// A Grade is how bad a finding is.
type Grade string

// The grades of findings.
const (
	OK   Grade = "ok"
	Warn Grade = "warn" // it works, and might be better
	Bad  Grade = "bad"
)

// Options are what to examine.
type Options struct {
	Config   string   // the file of the configuration
	Err      error    // why the configuration cannot be used
	Warnings []string // about variables of the environment
	Renamed  []string // keys of the configuration that have a new name
	Root     string
	State    string // the state directory
	Seal     sealing.Options
	Agents   []Agent
	Runner   *Runner // of this machine; nil: none
	Build    string  // the id of this build; "" when it is unknown

	Approvers     []Approver
	ApproversFile string // "" when they are in the file of the configuration

	ApproversGroup string            // "" for none
	GroupSocket    client.SocketPath // of the group; zero if GroupErr says why there is none
	GroupErr       error
}

// An Agent is an agent of the configuration.
type Agent struct {
	Binding agent.Binding
	Problem error // why tasks for it are refused
}

// Examine returns the findings of all checks.
func Examine(ctx context.Context, o Options) []Finding {
	d := &checker{Options: o}
	d.run(ctx)
	return d.findings
}

// A checker runs the checks and collects their findings.
type checker struct {
	Options

	pid      int    // the daemon's; 0 when none is seen
	path     string // the PATH that agents are looked for on
	findings []Finding
}

func (d *checker) run(ctx context.Context) {
	if d.configuration() {
		for _, check := range []func(context.Context){
			d.mailbox, d.cleaning, d.stateDirectory, d.daemon, d.socket, d.keeper, d.ledger, d.seals, d.left,
			d.user, d.service, d.logout, d.paths, d.checkAgents, d.cgroup, d.approvers, d.approversSocket, d.disks,
		} {
			check(ctx)
		}
	}
	d.ownRunner()
	d.inotify()
	d.clock()
}

func (d *checker) note(f Finding) { d.findings = append(d.findings, f) }

func (d *checker) good(check, format string, args ...any) {
	d.note(Finding{Check: check, State: OK, Finding: fmt.Sprintf(format, args...)})
}

func (d *checker) warn(check, fix, format string, args ...any) {
	d.note(Finding{Check: check, State: Warn, Finding: fmt.Sprintf(format, args...), Hint: fix})
}

func (d *checker) bad(check, fix, format string, args ...any) {
	d.note(Finding{Check: check, State: Bad, Finding: fmt.Sprintf(format, args...), Hint: fix})
}
