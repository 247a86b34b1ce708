package torture_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"mailboxd/envelope"
)

// A damage is what happens to the state between two lives of the daemon. Only
// anyone who kills the daemon uses it, and nobody else until all is over. All methods
// of nil do nothing.
type damage struct {
	removed, flipped, obstacles int
	done                        []span   // when a ledger was damaged
	blocked                     []string // paths of objects that stand where files of the daemon belong
	kept                        int
}

func (d *damage) String() string {
	return fmt.Sprintf("ledger files removed %d times, %d bytes flipped, %d obstacles", d.removed, d.flipped, d.obstacles)
}

// some does some damage, at times.
func (d *damage) some(s *site, b *book, dice *rand.Rand) (err error) {
	if d == nil {
		return nil
	}
	from, before := time.Now(), d.removed+d.flipped
	switch dice.IntN(9) {
	case 0:
		err = d.remove(s, dice)
	case 1, 2, 3:
		err = d.flip(s, dice)
	case 4:
		return d.blockLetters(s)
	case 5:
		return d.blockRun(s, b, dice)
	case 6:
		return d.clear(s)
	}
	if d.removed+d.flipped > before {
		d.done = append(d.done, span{from, time.Now()})
	}
	return err
}

// remove removes files of the ledger: all of them, or some.
func (d *damage) remove(s *site, dice *rand.Rand) error {
	d.removed++
	ends := [][]string{
		{"", "-wal", "-shm", "-last"},
		{"", "-wal", "-shm", "-last"},
		{""},
		{"-wal"},
		{"-wal", "-shm"},
		{"-last"},
	}[dice.IntN(6)]
	for _, end := range ends {
		if err := os.Remove(s.path("state/ledger.db" + end)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// flip changes one byte of the write-ahead log, mostly near its beginning, where the latest commits
// are, or of the number of the last commit.
func (d *damage) flip(s *site, dice *rand.Rand) error {
	path := s.path("state/ledger.db" + []string{"-wal", "-wal", "-wal", "-last"}[dice.IntN(4)])
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(text) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	d.flipped++
	within := len(text)
	if dice.IntN(4) > 0 {
		within = min(within, 64<<10)
	}
	text[dice.IntN(within)] ^= byte(1 + dice.IntN(255))
	return os.WriteFile(path, text, 0o600)
}

// blockLetters puts a directory where the dead letters of today and of tomorrow belong,
// whose file so far is kept beside it.
func (d *damage) blockLetters(s *site) error {
	for _, day := range []time.Time{time.Now().UTC(), time.Now().UTC().AddDate(0, 0, 1)} {
		path := s.path("box/rejected/" + day.Format(time.DateOnly) + ".jsonl")
		info, err := os.Lstat(path)
		if err == nil && info.IsDir() {
			continue
		}
		d.kept++
		if err == nil {
			err = os.Rename(path, s.path(fmt.Sprintf("box/rejected/kept-%d.jsonl", d.kept)))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
		d.obstacles++
		d.blocked = append(d.blocked, path)
	}
	return nil
}

// blockRun puts a file where the run directories of a task belong that is sent soon.
func (d *damage) blockRun(s *site, b *book, dice *rand.Rand) error {
	name := string("abcde"[dice.IntN(5)])
	id := fmt.Sprintf("%s-%d", name, b.sent(name)+1+dice.IntN(5))
	path := s.path("state/runs/" + id)
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil // it was sent already, or nothing was
	}
	if err != nil {
		return err
	}
	d.obstacles++
	d.blocked = append(d.blocked, path)
	return file.Close()
}

// clear takes the obstacles away.
func (d *damage) clear(*site) (err error) {
	if d == nil {
		return nil
	}
	for _, path := range d.blocked {
		err = errors.Join(err, os.Remove(path))
	}
	d.blocked = nil
	return err
}

// spans are when a ledger was damaged.
func (d *damage) spans() []span {
	if d == nil {
		return nil
	}
	return d.done
}

// explains reports whether a result is what may become of a task when its ledger
// is lost: a person ended it, since it had run, or an answer to an earlier version
// of it was there when its lines were taken in again.
func (d *damage) explains(b *book, p promise, r envelope.Result, runs map[key]execution) bool {
	if d == nil || p.fate != run {
		return false
	}
	if r.Status == envelope.Stopped {
		return b.ended[p.id]
	}
	for version := 1; version <= p.version; version++ {
		earlier := p
		earlier.version = version
		if judgeRun(earlier, r, runs[key{p.id, version}]) == nil {
			return true
		}
	}
	return false
}

// orphaned reports whether a process began before the ledger was damaged last:
// when its keeper was killed too, nobody knows whose it is.
func (d *damage) orphaned(pid int) bool {
	info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil && d != nil && slices.ContainsFunc(d.done, func(s span) bool { return info.ModTime().Before(s.to) })
}

// toldAgain reports whether the notifications about a task are those that a requester may get
// if the ledger is lost meanwhile: the same ones again. A task that came without an agent is
// taken when one is chosen. If that was lost before the requester was told, and the task is
// held since it has run, it may end without an agent.
func (d *damage) toldAgain(p promise, notified []string) bool {
	ended := slices.Contains(notified, "DONE") || slices.Contains(notified, "ERR")
	return d != nil && ended && (p.routed || slices.Contains(notified, "ACK"))
}
