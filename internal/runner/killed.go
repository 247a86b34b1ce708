package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// killedName is the file, in the directory of the keepers, that lists the
// lifetimes of the keepers that were killed: a line for each, with the boot.
const killedName = "killed"

// A lifetime is the time in which a keeper lived that did not leave of its own
// accord, in clock ticks since boot. The children of such a keeper belong to init
// from then on, so nothing but the time says that they were part of a run. The end
// is when the death was noticed.
type lifetime struct{ start, end uint64 }

// readKilled reads the lifetimes of this boot; no process is left of another.
func readKilled(root *os.Root) (all []lifetime, err error) {
	text, err := root.ReadFile(killedName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		var boot string
		var l lifetime
		if n, _ := fmt.Sscanf(line, "%s %d %d\n", &boot, &l.start, &l.end); n == 3 && boot == Boot() { // a torn line was noticed again
			all = append(all, l)
		}
	}
	return all, err
}

// noteKilled notes the keepers that were killed since it was called last. An
// error says that it cannot be told whether a keeper lives.
func (k *Keepers) noteKilled() error {
	k.starting.Lock()
	defer k.starting.Unlock()
	all, err := builds(k.root)
	if err != nil {
		return fmt.Errorf("look for killed keepers: %w", err)
	}
	for _, build := range all {
		if err := k.noteIfKilled(place{k.root, build}); err != nil {
			return fmt.Errorf("look for killed keepers: %w", err)
		}
	}
	return nil
}

// noteIfKilled notes the death of one keeper, unless it lives. The caller has
// locked starting.
func (k *Keepers) noteIfKilled(p place) error {
	const patience = 2 * time.Second // a child that it was just starting may have its lock for a moment
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	for {
		lock, err := p.lock()
		if err != nil {
			return err
		}
		if lock != nil {
			defer lock.Close()
			if err := k.note(lock); err != nil {
				return err
			}
			p.clear()
			return nil
		}
		l, err := p.dial(ctx)
		if err == nil {
			return l.conn.Close()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("keeper of the build %s does not answer: %w", p.build, err)
		}
		pause(ctx, time.Millisecond)
	}
}

// note records the lifetime of a dead keeper whose lock is in hand, if that says
// when it began.
func (k *Keepers) note(lock *os.File) error {
	var boot string
	l := lifetime{end: ticks()}
	text := make([]byte, 128)
	n, _ := lock.ReadAt(text, 0) // an empty one is of a keeper that was not started
	if n, _ := fmt.Sscanf(string(text[:n]), "%s %d\n", &boot, &l.start); n != 2 || boot != Boot() {
		return nil
	}
	list, err := k.root.OpenFile(killedName, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(list, "\n%s %d %d\n", boot, l.start, l.end)
	if err = errors.Join(err, list.Close()); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.killed = append(k.killed, l)
	return nil
}

// writeStart writes into a lock when the keeper begins that is about to have it.
func writeStart(lock *os.File) error {
	text := fmt.Sprintf("%s %d\n", Boot(), ticks())
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err := lock.WriteAt([]byte(text), 0)
	return err
}

// underKilled reports whether the session of one of the processes began while a
// keeper lived that was killed. The session of this process is none of a run.
func (k *Keepers) underKilled(chain []entry) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.killed) == 0 {
		return false
	}
	own, _ := unix.Getsid(0) // never fails for ourselves
	for _, e := range chain {
		if e.Session == own {
			continue
		}
		began := e.Start
		if leader, ok := stat(e.Session); ok {
			began = leader.Start
		}
		for _, l := range k.killed {
			if l.start <= began && began <= l.end {
				return true
			}
		}
	}
	return false
}
