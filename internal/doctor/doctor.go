// Package doctor checks the mailbox, the state, the agents and the machine, and says what
// to do about each problem. It changes nothing.
package doctor

import (
	"context"
	"fmt"
	"io"
	"strings"

	"mailboxd/internal/agent"
	"mailboxd/internal/term"
)

// A Finding is the outcome of a check. Scripts rely on names and states.
type Finding struct {
	Check   string `json:"check"`
	Subject string `json:"subject,omitempty"` // of several things that one check looks at
	State   Grade  `json:"state"`
	Finding string `json:"finding"`
	Hint    string `json:"mend,omitempty"` // what to do about it
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
	Config string // the file of the configuration
	Err    error  // why the configuration cannot be used
	Root   string
	State  string // the state directory
	Agents []Agent
	Build  string // the id of this build; "" when it is unknown
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
			d.mailbox, d.cleaning, d.stateDirectory, d.daemon, d.socket, d.keeper, d.ledger,
			d.service, d.paths, d.checkAgents, d.disks,
		} {
			check(ctx)
		}
	}
	d.inotify()
	d.clock()
}

func (d *checker) note(f Finding) { d.findings = append(d.findings, f) }

func (d *checker) good(check, format string, args ...any) {
	d.note(Finding{Check: check, State: OK, Finding: fmt.Sprintf(format, args...)})
}

func (d *checker) warn(check, mend, format string, args ...any) {
	d.note(Finding{Check: check, State: Warn, Finding: fmt.Sprintf(format, args...), Hint: mend})
}

func (d *checker) bad(check, mend, format string, args ...any) {
	d.note(Finding{Check: check, State: Bad, Finding: fmt.Sprintf(format, args...), Hint: mend})
}

// Print prints the findings and counts them, or each as a line of JSON.
func Print(w io.Writer, findings []Finding, asJSON bool) error {
	if asJSON {
		for _, f := range findings {
			if err := term.PrintJSON(w, f); err != nil {
				return err
			}
		}
		return nil
	}
	count, width := map[Grade]int{}, 0
	for _, f := range findings {
		count[f.State]++
		width = max(width, len(f.name()))
	}
	for _, f := range findings {
		fmt.Fprintf(w, "%-4s  %-*s  %s\n", f.State, width, f.name(), term.Escape(f.Finding))
		if f.Hint != "" {
			fmt.Fprintf(w, "%*s-> %s\n", width+8, "", term.Escape(f.Hint))
		}
	}
	_, err := fmt.Fprintf(w, "\n%d ok, %d that might be better, %d bad\n", count[OK], count[Warn], count[Bad])
	return err
}

func (f Finding) name() string { return strings.TrimSpace(f.Check + " " + term.Escape(f.Subject)) }
