package main

import (
	"github.com/rs/zerolog"

	"mailboxd/dispatch/store"
	"mailboxd/internal/config"
	"mailboxd/internal/ledger"
	"mailboxd/internal/runner"
	"mailboxd/mailbox"
)

// A house is everything that a daemon has open, and nobody else may have.
type house struct {
	box     *mailbox.Box
	state   *mailbox.State
	memory  *ledger.Ledger
	keepers *runner.Keepers
	team    *team
	fresh   bool     // this is the very first start
	doors   []func() // what to close, in the order of opening
}

// openHouse opens the parts one after the other; one that is locked or broken
// leaves none of them open.
func openHouse(cfg config.Config, log zerolog.Logger) (_ *house, err error) {
	h := &house{}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if err := h.openBox(cfg); err != nil {
		return nil, withSpaceHint(err, cfg.Root, "result files and task files that nobody needs any more can be removed")
	}
	if err := h.openState(cfg, log); err != nil {
		return nil, err
	}
	if h.keepers, err = openKeepers(h.state); err != nil {
		return nil, err
	}
	h.closes(func() { h.keepers.Close() })
	runner.Brand() // before there are workers
	if h.team, err = newTeam(cfg, places{box: h.box, state: h.state, keepers: h.keepers, refRoots: cfg.Intake.RefRoots}, log); err != nil {
		return nil, err
	}
	h.closes(h.team.close)
	return h, nil
}

// openBox opens and locks the half that other programs see.
func (h *house) openBox(cfg config.Config) (err error) {
	if h.box, err = mailbox.Open(cfg.Root); err != nil {
		return err
	}
	h.closes(func() { h.box.Close() })
	return h.box.Lock()
}

// openState opens the private half, which nobody else may work with then.
func (h *house) openState(cfg config.Config, log zerolog.Logger) (err error) {
	dir, err := cfg.StateDirOf(h.box.Path())
	if err != nil {
		return err
	}
	defer func() { err = withSpaceHint(err, dir, "directories in runs/ of tasks that are over can be removed") }()
	if h.state, err = mailbox.OpenState(dir, h.box.Path()); err != nil {
		return err
	}
	h.closes(func() { h.state.Close() })
	if err := h.state.Claim(h.box.Path()); err != nil {
		return err
	}
	traces, err := h.state.Traces()
	if err != nil {
		return err
	}
	var opened ledger.Opened
	if h.memory, opened, err = ledger.Open(h.state.LedgerPath(), traces...); err != nil {
		return err
	}
	h.closes(func() { h.memory.Close() })
	switch {
	case opened.Aside != "":
		log.Error().Str("file", opened.Aside).Err(opened.Cause).Msg("ledger was unreadable and is kept aside; a new one was begun, and tasks that may have run are held")
	case opened.Lost():
		log.Error().Str("file", h.state.LedgerPath()).Err(opened.Cause).Msg("ledger is missing; a new one was begun, and tasks that may have run are held")
	}
	h.fresh = opened.Created && !opened.Lost()
	return nil
}

func (h *house) closes(door func()) { h.doors = append(h.doors, door) }

// close closes what was opened, the last first. What it cannot close, the end
// of the process does.
func (h *house) close() {
	for i := range h.doors {
		h.doors[len(h.doors)-1-i]()
	}
}

func (h *house) parts() store.Parts {
	return store.Parts{Box: h.box, State: h.state, Ledger: h.memory}
}

// greet tells the operator what is served, and what might be better.
func (h *house) greet(cfg config.Config, ephemeral bool, log zerolog.Logger) {
	if !ephemeral {
		for _, warning := range h.box.Warnings() {
			log.Warn().Str("root", h.box.Path()).Msg(warning.Error())
		}
	}
	if len(cfg.Agents) == 0 {
		log.Warn().Msg("no agents are configured, so every task will be refused; mailboxd init writes a first one")
	}
	log.Info().Str("root", h.box.Path()).Strs("agents", h.team.current.Load().ids()).Str("version", version()).Msg("serving")
}
