// Package notice runs commands of the operator when tasks wait for a person, end well or fail.
package notice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
)

// Commands are the programs with their arguments that show notices. An empty one shows none.
type Commands struct {
	Waits    []string // of tasks that wait for a person
	Finished []string // of tasks that ended with an answer
	Failed   []string // of tasks that ended without one
}

// A Notifier runs a command when tasks wait for a person, once for each task and reason, and
// commands when tasks end. The ledger has the notices of waiting tasks, so they are not
// repeated after a restart. Nothing waits for a notifier.
type Notifier struct {
	commands  Commands
	memory    *ledger.Ledger
	ends      ends
	notified  map[int64][]task.Reason // by the seq of a waiting task: the reasons of its last notice
	batchTime time.Duration           // after a change, for one notice of many tasks
	rest      time.Duration           // after a notice
	timeout   time.Duration           // of the command
	failing   bool                    // the command failed, and that was logged
	log       zerolog.Logger
}

// New returns a notifier. A command that cannot show notices is not used; that is logged
// unless it is the default for waiting tasks. Tasks that ended before are not reported.
func New(ctx context.Context, commands Commands, isDefault bool, memory *ledger.Ledger, log zerolog.Logger) *Notifier {
	n := &Notifier{memory: memory, notified: map[int64][]task.Reason{}, batchTime: time.Second, rest: 30 * time.Second, timeout: 10 * time.Second, log: log}
	for _, c := range []struct {
		kind string
		from []string
		to   *[]string
	}{{waits, commands.Waits, &n.commands.Waits}, {finished, commands.Finished, &n.commands.Finished}, {failed, commands.Failed, &n.commands.Failed}} {
		switch why := cannotShow(c.from); {
		case why == "":
			*c.to = c.from
		case len(c.from) > 0 && (c.kind != waits || !isDefault):
			log.Warn().Str("key", "notify."+c.kind).Str("reason", why).Msg("notices are off")
		}
	}
	last, err := memory.LastEvent(ctx)
	if err != nil {
		log.Warn().Err(err).Msg("tasks that end before the first notice may be reported late")
	}
	n.ends = ends{last: last}
	return n
}

// desktopCommand needs a desktop to show notices.
const desktopCommand = "notify-send"

// cannotShow says why a command cannot show notices, or "".
func cannotShow(command []string) string {
	if len(command) == 0 {
		return "there is no command"
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return err.Error()
	}
	_, noBus := os.Stat(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "bus"))
	if filepath.Base(command[0]) == desktopCommand && os.Getenv("DBUS_SESSION_BUS_ADDRESS") == "" && noBus != nil {
		return "there is no desktop to show it on"
	}
	return ""
}

// Serve shows notices until ctx ends.
func (n *Notifier) Serve(ctx context.Context) error {
	for n.hasCommand() && ctx.Err() == nil {
		changed, began := n.memory.Changed(), time.Now()
		shown, err := n.lookAll(ctx)
		gather := max(n.batchTime, 20*time.Since(began)) // reading many held tasks takes long
		if err != nil && ctx.Err() == nil {
			n.reportFault(err)
		}
		if shown || err != nil {
			pause(ctx, n.rest)
			continue
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
		pause(ctx, gather)
	}
	<-ctx.Done()
	return nil
}

func (n *Notifier) hasCommand() bool {
	return len(n.commands.Waits)+len(n.commands.Finished)+len(n.commands.Failed) > 0
}

// lookAll shows the notices that are due, and reports whether there were any.
func (n *Notifier) lookAll(ctx context.Context) (shown bool, err error) {
	if len(n.commands.Waits) > 0 {
		shown, err = n.look(ctx)
	}
	if len(n.commands.Finished)+len(n.commands.Failed) > 0 {
		ended, failure := n.lookEnds(ctx)
		shown, err = shown || ended, errors.Join(err, failure)
	}
	return shown, err
}

// look shows a notice of the tasks that wait for a new reason, and reports whether there
// were any.
func (n *Notifier) look(ctx context.Context) (shown bool, err error) {
	rows, err := n.memory.Tasks(ctx, ledger.Filter{States: []task.State{task.Held, task.Review, task.Running}})
	if err != nil {
		return false, err
	}
	notified, news := map[int64][]task.Reason{}, []task.Task(nil)
	for _, row := range rows {
		waits := waitsFor(row)
		asked, err := n.isAsked(ctx, row)
		if err != nil {
			return false, err
		}
		if len(waits) == 0 || !asked {
			continue
		}
		known, ok := n.notified[row.Seq]
		if !ok {
			if known, err = n.notifiedBefore(ctx, row); err != nil {
				return false, err
			}
		}
		notified[row.Seq] = waits
		if slices.ContainsFunc(waits, func(r task.Reason) bool { return !slices.Contains(known, r) }) {
			news = append(news, row)
		}
	}
	if len(news) > 0 {
		err = n.remember(ctx, news) // first, so that a failure does not repeat the notice at each start
	}
	if err != nil {
		return false, err
	}
	n.notified = notified
	if len(news) == 0 {
		return false, nil
	}
	title, text := message(news)
	return true, n.show(ctx, n.commands.Waits, n.notice(ctx, waits, title, text, news))
}

// isAsked reports whether a person decides about a task: an answer in review may wait for an
// overseer instead.
func (n *Notifier) isAsked(ctx context.Context, row task.Task) (bool, error) {
	if row.State != task.Review {
		return true, nil
	}
	consent, asked, err := n.memory.Consent(ctx, row.Seq, envelope.ApprovalPost, "")
	return asked && consent.Decision == task.Undecided, err
}

// noticedKind is the kind of the event of a notice.
const noticedKind = task.KindTaskNoticed

type noticedData struct {
	Waits []task.Reason `json:"waits_for"`
}

func (n *Notifier) remember(ctx context.Context, rows []task.Task) error {
	return n.memory.Update(ctx, func(tx *ledger.Tx) error {
		for _, row := range rows {
			data, err := json.Marshal(noticedData{waitsFor(row)})
			if err != nil {
				return err
			}
			if err := tx.Log(task.Event{Time: time.Now(), Kind: noticedKind, Task: row.ID, Revision: row.Revision, Data: data}); err != nil {
				return err
			}
		}
		return nil
	})
}

// notifiedBefore returns the reasons of the last notice about a task since it last was
// queued or ran.
func (n *Notifier) notifiedBefore(ctx context.Context, row task.Task) (notified []task.Reason, err error) {
	for last := int64(0); ; {
		events, err := n.memory.Events(ctx, row.ID, last, eventPage)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			last = e.Seq
			var data noticedData
			switch {
			case e.Revision != row.Revision:
			case e.Kind == task.KindTaskQueued || e.Kind == task.KindTaskStarted || e.Kind == task.KindTaskRetried:
				notified = nil
			case e.Kind == noticedKind && json.Unmarshal(e.Data, &data) == nil:
				notified = data.Waits
			}
		}
		if len(events) < eventPage {
			return notified, nil
		}
	}
}

// show runs a command with the title and the text as arguments, and the notice on its
// standard input.
func (n *Notifier) show(ctx context.Context, command []string, about Notice) error {
	ctx, stop := context.WithTimeout(ctx, n.timeout)
	defer stop()
	input, err := json.Marshal(about)
	if err != nil {
		return fmt.Errorf("show notice: %w", err)
	}
	cmd := exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], about.Title, about.Text)...)
	cmd.Stdin = bytes.NewReader(append(input, '\n'))
	cmd.WaitDelay = time.Second // a program that leaves its input open to another one
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("show notice with %s: %w", command[0], err)
	}
	n.failing = false
	return nil
}

// reportFault logs the first failure in a row.
func (n *Notifier) reportFault(err error) {
	if !n.failing {
		n.log.Warn().Err(err).Msg("notice not sent")
	}
	n.failing = true
}

// eventPage is how many events are read at once.
const eventPage = 1000

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
