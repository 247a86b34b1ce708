package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
)

// intake reports the faults that the daemon itself reports.
func (d *checker) intake(faults []client.Fault) {
	if len(faults) == 0 {
		d.good("intake", "no fault: the daemon reads tasks and runs agents")
	}
	for _, f := range faults {
		found := Finding{
			Check: "intake", Subject: f.File, State: Bad, Hint: f.Hint,
			Finding: fmt.Sprintf("since %s: %s: %s", term.Stamp(f.Since), f.What, f.Reason),
		}
		if f.File != "" {
			found.State = Warn // of one file, which may be no task file at all
		}
		d.note(found)
	}
}

// loaded checks that the daemon has in force what its file says.
func (d *checker) loaded(ctx context.Context, daemon *client.Client) {
	diff, err := daemon.ConfigDiff(ctx)
	switch {
	case err != nil: // of an earlier version, which cannot say, or of another user
	case len(diff.Mistakes) > 0:
		d.warn("reload", "mailboxd config check", "the file of the daemon has mistakes, so it goes on with the configuration read at %s", term.Stamp(diff.ReadAt))
	case len(diff.Changes) > 0:
		d.warn("reload", view.AfterConfigDiff(diff.Changes), "the configuration changed since the daemon read it: %s", strings.Join(view.ConfigChanges(diff.Changes), "; "))
	default:
		d.good("reload", "the daemon has in force what %s says", cmp.Or(diff.File, "its environment"))
	}
}

// socket checks that the daemon answers on the control socket.
func (d *checker) socket(ctx context.Context) {
	places, err := reader.SocketPaths(d.Root, d.State)
	if err != nil {
		d.bad("socket", "ls -ld "+term.ShellWord(d.Root), "%v", err)
		return
	}
	daemon, err := client.Open(ctx, places...)
	var status client.Status
	if err == nil {
		status, err = daemon.Status(ctx)
		defer daemon.Close()
	}
	at := likelyPlace(places)
	switch {
	case err == nil:
		d.good("socket", "process %d answers, mailboxd %s, at %s", status.PID, status.Version, daemon.Where())
		d.loaded(ctx, daemon)
		d.intake(status.Faults)
		d.runners(ctx, daemon)
		return
	case errors.Is(err, client.ErrDown) && d.pid == 0:
		d.good("socket", "%s, when a daemon runs", at)
	case reader.IsBusy(err):
		d.warn("socket", "ss -xp src "+term.ShellWord(at.String()), "%v", err)
	default:
		fix := "mailboxd serve"
		if d.pid > 0 {
			fix = fmt.Sprintf("kill %d; %s", d.pid, fix)
		}
		d.bad("socket", fix, "%s: %v", at, err)
	}
	d.good("intake", "not checked, since no daemon answers")
}

// likelyPlace is the first place whose parent directory exists, or else the last place,
// which the daemon makes.
func likelyPlace(places []client.SocketPath) client.SocketPath {
	for _, p := range places {
		if _, err := os.Stat(filepath.Dir(p.Dir)); err == nil {
			return p
		}
	}
	return places[len(places)-1]
}
