package torture_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// What is played is a power cut at a sync: the daemon dies at the point behind
// a commit, at which the ledger and its log are exactly what was synced. Of the
// rest, a copy gets only what has to be on disk, at worst:
//
//   - the ledger and its write-ahead log, behind which lies part of a frame that
//     was never finished; not the shared memory of its readers;
//   - of results/, a random half of the names, for names there are not synced;
//   - of the run directories a random half, for they are not synced at all;
//   - no task line, for their writers sync nothing: what is accepted has to be
//     done without them;
//   - another boot of the machine, with no process of the last one.
//
// A new daemon opens the copy. Not played: a disk that lies about syncs or tears
// a sector, the order of writes inside one checkpoint of SQLite, and the
// journal of the file system; directories that are new (queues/, history/) are
// taken to be there with what was synced in them, as ext4, XFS and btrfs do it.
func TestNothingAcknowledgedIsMissingAfterAPowerCut(t *testing.T) {
	dice := chance(1 << 33)
	rounds := max(2, int(*duration/(10*time.Second)))
	acknowledged := 0
	for range rounds {
		acknowledged += cutPower(t, dice)
		if t.Failed() {
			break
		}
	}
	t.Logf("seed %d: %d power cuts, %d tasks acknowledged before them", *seed, rounds, acknowledged)
}

// cutPower plays one, and returns how many tasks had been acknowledged.
func cutPower(t *testing.T, dice *mathrand.Rand) int {
	t.Helper()
	before := newSite(t)
	w := &writer{site: before, book: newBook(), chance: dice, name: "p", into: "p", own: true}
	for range 40 {
		if err := w.act(); err != nil {
			t.Fatal(err)
		}
	}
	v, err := before.start(fmt.Sprintf("committed:%d", 1+dice.IntN(80)))
	if err != nil {
		t.Fatal(err)
	}
	v.live(t.Context(), 5*time.Second)
	before.end()
	ids, err := before.acknowledged()
	if err != nil {
		t.Fatal(err)
	}
	after := before.afterPowerCut(t, dice)
	last, err := after.start("", "--once")
	if err != nil {
		t.Fatal(err)
	}
	<-last.gone
	if last.err != nil {
		t.Fatalf("the daemon after the power cut: %v; see %s", last.err, after.path("log"))
	}
	for id := range ids {
		if _, err := after.read(id); err != nil {
			t.Errorf("task %s was acknowledged before the power cut: %v", id, err)
		}
	}
	after.checkDiary(t)
	return len(ids)
}

// acknowledged reads from the log which tasks the daemon said it had: what it
// says comes after what it syncs.
func (s *site) acknowledged() (map[string]bool, error) {
	text, err := os.ReadFile(s.path("log"))
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		var said struct {
			Message string `json:"message"`
			ID      string `json:"task_id"`
		}
		if err := json.Unmarshal([]byte(line), &said); err != nil {
			continue // the last line may be half
		}
		switch said.Message {
		case "task accepted", "agent started", "result put", "task finished", "result placed by somebody else adopted":
			ids[said.ID] = true
		}
	}
	return ids, nil
}

// afterPowerCut copies what a disk would have.
func (s *site) afterPowerCut(t *testing.T, dice *mathrand.Rand) *site {
	t.Helper()
	after := newSite(t)
	after.boot = rand.Text()
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(s.dir, path) // it is below it
		switch {
		case err != nil:
			return err
		case d.IsDir() && lostInTheDark(name, dice):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(after.path(name), 0o700)
		case !d.Type().IsRegular() || name == "config.yaml" || name == "state/root" || lostInTheDark(name, dice):
			// The copy is configured for itself: it is a mailbox that was moved.
			return nil
		}
		text, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(after.path(name), text, 0o600))
	})
	if err == nil {
		err = tear(after.path("state/ledger.db-wal"), dice)
	}
	if err != nil {
		t.Fatal(err)
	}
	return after
}

// lostInTheDark reports whether the name, or what is behind it, was not synced.
func lostInTheDark(name string, dice *mathrand.Rand) bool {
	dir := filepath.Dir(name)
	switch {
	case dir == "box/tasks" || name == "state/ledger.db-shm":
		return true
	case name == "state/root": // it names the mailbox, and the copy's lies elsewhere
		return true
	case dir == "box/results" && !strings.Contains(name, "stray-"):
		return dice.IntN(2) == 0
	case filepath.Dir(dir) == "state/runs":
		return dice.IntN(2) == 0
	}
	return false
}

// tear adds what a commit had begun to write.
func tear(path string, dice *mathrand.Rand) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	frame := make([]byte, 1+dice.IntN(4119)) // a frame has 4,120 bytes
	_, _ = rand.Read(frame)                  // it never fails
	_, err = file.Write(frame)
	return errors.Join(err, file.Close())
}
