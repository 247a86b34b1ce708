package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/sandboxing/breakout"
	"mailboxd/internal/sandboxing/confine"
	"mailboxd/internal/sandboxing/sandbox"
)

// A Breakout is the end of all attempts to break out of the sandbox of an agent.
type Breakout struct {
	AgentID  string    `json:"agent_id"`
	Profile  string    `json:"profile"`
	Sandbox  string    `json:"sandbox"` // bubblewrap, weaker or none
	Why      string    `json:"why,omitempty"`
	Attempts []Attempt `json:"attempts"`
	Broke    int       `json:"broke"` // how many succeeded that the sandbox should hold
}

// An Attempt is the end of one attempt to break out.
type Attempt struct {
	Attempt string `json:"attempt"`
	State   State  `json:"state"`
	Why     string `json:"why,omitempty"` // what held it
}

// A State says what came of an attempt to break out.
type State string

// The states of attempts.
const (
	Held  State = "held"
	Known State = "known" // it succeeded, as documented of the weaker sandbox
	Broke State = "broke" // it succeeded, and should not
)

// TryBreakout tries to break out of the sandbox of an agent, at targets made for that. Of the
// mailbox itself it only tries to list the directories and to connect to the control socket.
func TryBreakout(ctx context.Context, b agent.Binding, root, state string) (_ Breakout, err error) {
	r := Breakout{AgentID: b.ID, Profile: string(b.Sandbox.Profile), Sandbox: "bubblewrap", Attempts: []Attempt{}}
	places := []string{os.TempDir()}
	home, err := os.UserHomeDir()
	if info, missing := os.Stat(home); err == nil && missing == nil && info.IsDir() {
		places = append(places, home)
	}
	stage, err := breakout.NewStage(places...)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	targets := stage.Targets
	targets.Lists = append(targets.Lists, root, state)
	if sockets, err := reader.SocketPaths(root, state); err == nil {
		for _, s := range sockets {
			targets.Sockets = append(targets.Sockets, s.String())
		}
	}
	found, weaker, err := agent.TryBreakout(ctx, b, agent.OwnDirs{Root: root, State: state}, targets)
	if without, ok := errors.AsType[*agent.UnsandboxedError](err); ok {
		r.Sandbox, r.Why = "none", without.Error()
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("try the sandbox of %s: %w", b.ID, err)
	}
	var holes []string
	if weaker {
		abi, _ := confine.Version() // it restricted a process just now
		r.Sandbox, holes = "weaker", breakout.Holes(abi >= sandbox.LandlockSignals)
	}
	for _, f := range found {
		a := Attempt{f.Attempt, Held, f.Why}
		switch {
		case f.Broke && slices.Contains(holes, f.Attempt):
			a.State = Known
		case f.Broke:
			a.State = Broke
			r.Broke++
		}
		r.Attempts = append(r.Attempts, a)
	}
	return r, nil
}

// Print prints the attempts as a table, or all as a line of JSON.
func (r Breakout) Print(w io.Writer, asJSON bool) error {
	if asJSON {
		return term.PrintJSON(w, r)
	}
	s, name := term.ScreenOf(w), term.Escape(r.AgentID)
	if r.Sandbox == "none" {
		_, err := fmt.Fprintf(s, "%s runs without a sandbox here, as missing: none says: %s\n", name, hang(s, term.OneLine(r.Why), 2))
		return err
	}
	fmt.Fprintf(s, "sandbox of %s: %s, %s\n", name, r.Profile, map[string]string{"bubblewrap": "bubblewrap", "weaker": "the weaker sandbox"}[r.Sandbox])
	width := 0
	for _, a := range r.Attempts {
		width = max(width, term.Width(a.Attempt))
	}
	for _, a := range r.Attempts {
		why := a.Why
		if a.State == Known {
			why = "succeeds in the weaker sandbox"
		}
		indent := 2 + len("broke") + 2 + width + 2
		fmt.Fprintf(s, "  %s  %-*s  %s\n", s.Paint(a.State.paint(), fmt.Sprintf("%-5s", a.State)), width, a.Attempt, hang(s, term.OneLine(why), indent))
	}
	_, err := fmt.Fprintf(s, "%d attempts to break out, %d broke through\n", len(r.Attempts), r.Broke)
	return err
}

func (s State) paint() term.Paint {
	switch s {
	case Held:
		return term.Green
	case Known:
		return term.Yellow
	}
	return term.Red
}
