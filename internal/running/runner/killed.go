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

// killedName is the file in the keepers' directory with a line for each lifetime of a
// killed keeper, with its boot.
const killedName = "killed"

// A lifetime is the life of a killed keeper, in clock ticks since boot. Its orphans belong
// to init, so only their start time shows that they may be part of a run. The end is the
// time when the death was noticed.
type lifetime struct{ start, end uint64 }

// readKilled reads the lifetimes of this boot; no process of another boot is left.
func readKilled(root *os.Root) (all []lifetime, err error) {
	text, err := root.ReadFile(killedName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(text)) {
		var boot string
		var l lifetime
		if n, _ := fmt.Sscanf(line, "%s %d %d\n", &boot, &l.start, &l.end); n == 3 && boot == Boot() { // an incomplete line was written again
			all = append(all, l)
		}
	}
	return all, err
}

// recordKilled records the keepers that were killed since its last call. An error says that
// the state of a keeper is unknown.
func (k *Keepers) recordKilled() error {
	k.starting.Lock()
	defer k.starting.Unlock()
	all, err := builds(k.root)
	if err != nil {
		return fmt.Errorf("look for killed keepers: %w", err)
	}
	for _, build := range all {
		if err := k.recordIfKilled(keeperPaths{k.root, build}); err != nil {
			return fmt.Errorf("look for killed keepers: %w", err)
		}
	}
	return nil
}

// recordIfKilled records the death of a keeper, unless it is alive. The caller holds
// starting.
func (k *Keepers) recordIfKilled(p keeperPaths) error {
	const timeout = 2 * time.Second // a child of a starting keeper can hold the lock for a moment
	ctx, stop := context.WithTimeout(context.Background(), timeout)
	defer stop()
	for {
		lock, err := p.lock()
		if err != nil {
			return err
		}
		if lock != nil {
			defer lock.Close()
			if err := k.recordLifetime(lock); err != nil {
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

// recordLifetime records the lifetime of a dead keeper from its lock, if the lock has a
// start time.
func (k *Keepers) recordLifetime(lock *os.File) error {
	var boot string
	l := lifetime{end: ticks()}
	text := make([]byte, 128)
	n, _ := lock.ReadAt(text, 0) // empty: the keeper never started
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

// writeStart writes the start time of a new keeper into its lock.
func writeStart(lock *os.File) error {
	text := fmt.Sprintf("%s %d\n", Boot(), ticks())
	if err := lock.Truncate(0); err != nil {
		return err
	}
	_, err := lock.WriteAt([]byte(text), 0)
	return err
}

// startedUnderKilled reports whether the session of a process began during the life of a
// killed keeper. The session of this process isn't a run's.
func (k *Keepers) startedUnderKilled(chain []entry) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.killed) == 0 {
		return false
	}
	own, _ := unix.Getsid(0) // never fails for this process
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
