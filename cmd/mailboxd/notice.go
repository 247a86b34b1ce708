package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rs/zerolog"

	"mailboxd/internal/config"
	"mailboxd/internal/ledger"
	"mailboxd/internal/reader"
	"mailboxd/internal/task"
)

// notices tell a person, by a command, that tasks wait for one: each task once
// for what it waits for, also over restarts, as the ledger remembers it. They
// follow the ledger, so nothing waits for them.
type notices struct {
	command  []string // "" is none: nobody is told
	memory   *ledger.Ledger
	told     map[int64][]task.Reason // by the seq of what waits now: what a person knows that it waits for
	gather   time.Duration           // after a change, so that a burst is one notice
	rest     time.Duration           // after a notice
	patience time.Duration           // with the command
	failing  bool                    // the last one was not shown, and that was logged
	log      zerolog.Logger
}

func newNotices(cfg config.Config, memory *ledger.Ledger, log zerolog.Logger) *notices {
	n := &notices{memory: memory, told: map[int64][]task.Reason{}, gather: time.Second, rest: 30 * time.Second, patience: 10 * time.Second, log: log}
	command := cfg.NoticeCommand()
	switch why := cannotShow(command); {
	case why == "":
		n.command = command
	case len(command) > 0 && !slices.Equal(command, config.DefaultNotice()):
		log.Warn().Str("reason", why).Msg("nobody is told when a task waits for a person")
	}
	return n
}

// cannotShow says why a command would show nothing, or "".
func cannotShow(command []string) string {
	if len(command) == 0 {
		return "there is no command"
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return err.Error()
	}
	_, noBus := os.Stat(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "bus"))
	if filepath.Base(command[0]) == config.DefaultNotice()[0] && os.Getenv("DBUS_SESSION_BUS_ADDRESS") == "" && noBus != nil {
		return "there is no desktop to show it on"
	}
	return ""
}

// serve tells people until ctx ends.
func (n *notices) serve(ctx context.Context) error {
	for len(n.command) > 0 && ctx.Err() == nil {
		changed, began := n.memory.Changed(), time.Now()
		shown, err := n.look(ctx)
		gather := max(n.gather, 20*time.Since(began)) // of a great many held tasks, a look is no light one
		if err != nil && ctx.Err() == nil {
			n.complain(err)
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

// look tells of what waits now and was not told. It reports whether there was
// something.
func (n *notices) look(ctx context.Context) (shown bool, err error) {
	rows, err := n.memory.Tasks(ctx, ledger.Filter{States: []task.State{task.Held, task.Review}})
	if err != nil {
		return false, err
	}
	told, news := map[int64][]task.Reason{}, []task.Task(nil)
	for _, row := range rows {
		waits := waitsFor(row)
		if len(waits) == 0 {
			continue
		}
		known, ok := n.told[row.Seq]
		if !ok {
			if known, err = n.toldBefore(ctx, row); err != nil {
				return false, err
			}
		}
		told[row.Seq] = waits
		if slices.ContainsFunc(waits, func(r task.Reason) bool { return !slices.Contains(known, r) }) {
			news = append(news, row)
		}
	}
	if len(news) > 0 {
		err = n.remember(ctx, news) // first: rather no notice than one more at each start
	}
	if err != nil {
		return false, err
	}
	n.told = told
	if len(news) == 0 {
		return false, nil
	}
	return true, n.show(ctx, news)
}

// noticed is the event that a person was told of a task.
const noticed = task.KindTaskNoticed

type noticedData struct {
	Waits []task.Reason `json:"waits_for"`
}

func (n *notices) remember(ctx context.Context, rows []task.Task) error {
	return n.memory.Update(ctx, func(tx *ledger.Tx) error {
		for _, row := range rows {
			data, err := json.Marshal(noticedData{waitsFor(row)})
			if err != nil {
				return err
			}
			if err := tx.Log(task.Event{Time: time.Now(), Kind: noticed, Task: row.ID, Revision: row.Revision, Data: data}); err != nil {
				return err
			}
		}
		return nil
	})
}

// toldBefore returns what a person was told that a task waits for, since it
// last went on.
func (n *notices) toldBefore(ctx context.Context, row task.Task) (told []task.Reason, err error) {
	for last := int64(0); ; {
		events, err := n.memory.Events(ctx, row.ID, last, reader.EventPage)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			last = e.Seq
			var data noticedData
			switch {
			case e.Revision != row.Revision:
			case e.Kind == task.KindTaskQueued || e.Kind == task.KindTaskStarted || e.Kind == task.KindTaskRetried:
				told = nil
			case e.Kind == noticed && json.Unmarshal(e.Data, &data) == nil:
				told = data.Waits
			}
		}
		if len(events) < reader.EventPage {
			return told, nil
		}
	}
}

// show runs the command. What it is told are arguments, and no shell's.
func (n *notices) show(ctx context.Context, rows []task.Task) error {
	ctx, stop := context.WithTimeout(ctx, n.patience)
	defer stop()
	title, text := words(rows)
	cmd := exec.CommandContext(ctx, n.command[0], append(n.command[1:len(n.command):len(n.command)], title, text)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Start()
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("show notice with %s: %w", n.command[0], err)
	}
	n.failing = false
	return nil
}

// complain logs the first of a row of failures.
func (n *notices) complain(err error) {
	if !n.failing {
		n.log.Warn().Err(err).Msg("nobody could be told that a task waits for a person")
	}
	n.failing = true
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
