package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
)

// runners looks at each runner that the daemon knows.
func (d *checker) runners(ctx context.Context, daemon *client.Client) {
	all, err := daemon.Runners(ctx)
	if said, ok := errors.AsType[*client.Error](err); ok && said.Kind == client.NoTask { // an older daemon has no such request
		return
	}
	if err != nil {
		d.warn("runner", "mailboxd runners", "the runners are not known: %v", err)
		return
	}
	for _, r := range all {
		f := Finding{Check: "runner", Subject: r.Name, State: OK, Hint: term.OneLine(r.Next)}
		switch r.Status {
		case client.RunnerReady, client.RunnerBusy:
			f.Finding = fmt.Sprintf("%s, %d of %d slots used", r.Status, r.Running, r.Slots)
		case client.RunnerUnavailable:
			f.State = Bad
			f.Finding = "unavailable: " + term.OneLine(r.Reason)
		default:
			f.State = Warn
			f.Finding = strings.TrimSuffix(string(r.Status)+": "+term.OneLine(r.Reason), ": ")
		}
		if f.Hint == "" && f.State != OK {
			f.Hint = "mailboxd runners"
		}
		if off := time.Duration(r.ClockOff * float64(time.Second)).Round(time.Second); f.State == OK && off.Abs() > time.Minute {
			f.State, f.Hint = Warn, "start a service that sets the clock there, such as systemd-timesyncd"
			f.Finding += fmt.Sprintf("; its clock is off by %v", off)
		}
		d.note(f)
	}
}
