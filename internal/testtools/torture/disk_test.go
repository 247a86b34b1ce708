package torture_test

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"mailboxd/envelope"
)

// A disk says what is on it at worst when the power goes: what was synced before.
type disk struct {
	site    *site
	lengths map[uint64]int64 // how much of a file, by inode
	names   map[string]bool  // by path, in directories that were synced
	removed map[string]bool  // by path, in directories that were not synced since
	dice    *mathrand.Rand   // what becomes of the rest
}

// disk reads what the log of the fault points says was synced.
func (s *site) disk(dice *mathrand.Rand) (*disk, error) {
	text, err := os.ReadFile(s.path("faults"))
	if err != nil {
		return nil, err
	}
	d := &disk{s, map[uint64]int64{}, map[string]bool{}, map[string]bool{}, dice}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch words[0] {
		case "synced":
			var inode uint64
			var length int64
			if _, err := fmt.Sscan(line, &words[0], &inode, &length); err != nil {
				return nil, fmt.Errorf("read fault log: %q: %w", line, err)
			}
			d.lengths[inode] = length
		case "named":
			for _, name := range words[2:] {
				d.names[filepath.Join(words[1], name)] = true
			}
			for path := range d.removed {
				if filepath.Dir(path) == words[1] {
					delete(d.removed, path)
				}
			}
		case "removed":
			d.removed[words[1]] = true
		}
	}
	return d, nil
}

// afterPowerCut copies what is on the disk. The copy is configured for itself:
// it is a mailbox that was moved.
func (s *site) afterPowerCut(t *testing.T, b *book, dice *mathrand.Rand) *site {
	t.Helper()
	after := newSite(t)
	after.boot = rand.Text()
	d, err := s.disk(dice)
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(s.dir, path) // it is below it
		switch {
		case err != nil:
			return err
		case entry.IsDir() && !d.keeps(name):
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(after.path(name), 0o700)
		case !entry.Type().IsRegular() || !d.keeps(name):
			return nil
		}
		text, err := d.read(b, name)
		return errors.Join(err, os.WriteFile(after.path(name), text, 0o600))
	})
	if err = errors.Join(err, d.bringBack(after), tear(after.path("state/ledger.db-wal"), dice)); err != nil {
		t.Fatal(err)
	}
	return after
}

func (d *disk) coin() bool { return d.dice.IntN(2) == 0 }

// keeps reports whether a name is still there.
func (d *disk) keeps(name string) bool {
	dir := filepath.Dir(name)
	switch {
	case slices.Contains([]string{"config.yaml", "faults", "died", "state/root", "state/ledger.db-shm"}, name), dir == "box/tasks":
		return false
	case promised(name):
		return d.names[d.site.path(name)] || d.coin()
	case dir == "box/results":
		return strings.HasPrefix(filepath.Base(name), "stray-") || d.coin()
	case filepath.Dir(dir) == "state/runs":
		return d.coin()
	}
	return true
}

// promised reports whether a name has to be on disk before anything that is in
// it, or in the file of that name, is acknowledged. The name of its log is
// SQLite's affair.
func promised(name string) bool {
	if name == "state" || strings.HasPrefix(name, "state/ledger.db") && name != "state/ledger.db-wal" {
		return true
	}
	return slices.ContainsFunc([]string{"state/history", "state/artifacts", "box/queues", "box/rejected"}, func(dir string) bool {
		return name == dir || strings.HasPrefix(name, dir+"/")
	})
}

// read returns what is there of a file: all that was synced, and of the rest a
// part from its beginning.
func (d *disk) read(b *book, name string) ([]byte, error) {
	text, err := os.ReadFile(d.site.path(name))
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(d.site.path(name))
	if err != nil {
		return nil, err
	}
	length, known := d.lengths[info.Sys().(*syscall.Stat_t).Ino]
	id, result := strings.CutPrefix(strings.TrimSuffix(name, ".json"), "box/results/")
	switch {
	case name == "state/ledger.db": // SQLite writes to it when it folds its log into it, and syncs it then
		return text, nil
	case strings.HasPrefix(name, "state/runs/"): // never synced, and not always old
		if length = 0; d.coin() {
			return text, nil
		}
	case result && !known && (strings.HasPrefix(id, "stray-") || b.promises[id].fate == answered):
		return text, nil // somebody else's
	case !result && !promised(name) && name != "state/ledger.db-wal":
		return text, nil
	}
	length = min(length, int64(len(text)))
	return text[:length+d.dice.Int64N(int64(len(text))-length+1)], nil
}

// bringBack puts results there again whose removal may not be on disk. What
// was removed lies in the history.
func (d *disk) bringBack(after *site) error {
	for path := range d.removed {
		id := envelope.ID(strings.TrimSuffix(filepath.Base(path), ".json"))
		kept, err := filepath.Glob(d.site.path("state/history/" + id.Dir() + "/*.json"))
		if err != nil {
			return err
		}
		if len(kept) == 0 || d.coin() {
			continue
		}
		text, err := os.ReadFile(slices.MaxFunc(kept, newer))
		if err == nil {
			err = os.WriteFile(after.result(string(id)), text, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// newer compares the files at two paths by their age.
func newer(a, b string) int {
	one, errOne := os.Stat(a)
	other, errOther := os.Stat(b)
	if err := errors.Join(errOne, errOther); err != nil {
		return cmp.Compare(a, b)
	}
	return one.ModTime().Compare(other.ModTime())
}

// tear adds what a commit had begun to write to the log, if there is one.
func tear(path string, dice *mathrand.Rand) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	frame := make([]byte, 1+dice.IntN(4119)) // a frame has 4,120 bytes
	_, _ = rand.Read(frame)                  // it never fails
	_, err = file.Write(frame)
	return errors.Join(err, file.Close())
}
