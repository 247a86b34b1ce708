package torture_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/testtools/slowtest"
)

// What is played is a power cut at each sync of a file of the mailbox's or the
// ledger's, and between them: the daemon dies at a point, and a new one opens
// a copy of what has to be on disk by then, at worst:
//
//   - of a file as much as was synced, and some of what follows; behind the
//     ledger's write-ahead log lies part of a frame that was never finished;
//   - a name, if its directory was synced since, and the directory's own; of
//     the others a random half, for results/ is synced only for removals; and a
//     removal with no such sync may be undone;
//   - of the run directories a random half, and of their files a random part,
//     for they are not synced at all;
//   - no task line, for their writers sync nothing: what is accepted has to be
//     done without them; what others put into results/ is there whole or not;
//   - another boot of the machine, with no process of the last one.
//
// Not played: a disk that lies about syncs or tears a sector, the order of
// writes inside one checkpoint of SQLite, and the journal of the file system.
func TestNothingAcknowledgedIsMissingAfterAPowerCut(t *testing.T) {
	slowtest.SkipShort(t, "it starts two daemons for each sync")
	points, err := faultPoints()
	if err != nil {
		t.Fatal(err)
	}
	points = slices.DeleteFunc(points, func(p point) bool { return p.keeper })
	c := cutter{dice: chance(1 << 33), cuts: map[string]int{}}
	for _, p := range points {
		if !p.sync && p.name != "dead_letters_written" {
			continue
		}
		if c.cut(t, p); c.cuts[p.name] == 0 {
			t.Fatalf("the daemon never died at %s; want a power cut there", p.name)
		}
	}
	for began := time.Now(); time.Since(began) < *duration/4-time.Second; {
		c.cut(t, points[c.dice.IntN(len(points))])
	}
	t.Logf("seed %d: power cuts %v", *seed, c.cuts)
	t.Logf("checked after them: %d tasks acknowledged, %d results in the history, %d callbacks, %d dead letters", c.acknowledged, c.history, c.callbacks, c.letters)
}

// A cutter plays power cuts and counts what it has checked.
type cutter struct {
	dice *mathrand.Rand
	cuts map[string]int // by point

	acknowledged, history, callbacks, letters int
}

// cut plays one at the point, if the daemon comes by: in its first life or in
// the second, at some crossing or at the first.
func (c *cutter) cut(t *testing.T, p point) {
	t.Helper()
	most := 3
	if p.name == "committed" {
		most = 60
	}
	for _, lives := range []int{2, 2, 1} {
		if c.play(t, fmt.Sprintf("%s:%d", p.name, 1+c.dice.IntN(most)), lives) {
			c.cuts[p.name]++
			return
		}
		most = 1
	}
}

// play lives so many lives, of which the last is to end at the fault. It
// reports whether that happened, and then what came after was checked.
func (c *cutter) play(t *testing.T, fault string, lives int) bool {
	t.Helper()
	before := newSite(t)
	w := &writer{site: before, book: newBook(), chance: c.dice, name: "p", into: "p", parts: []string{"fast", "fast", "file", "fork", "crash"}}
	for life := range lives {
		if err := w.fill(); err != nil {
			t.Fatal(err)
		}
		if life < lives-1 {
			before.live(t, "")
		}
	}
	before.live(t, fault)
	before.end()
	if _, err := os.Stat(before.path("died")); err != nil {
		return false
	}
	after := before.afterPowerCut(t, w.book, c.dice)
	after.live(t, "")
	c.check(t, before, after, w.book)
	if t.Failed() {
		t.Fatalf("seed %d: the power was cut at %s of life %d", *seed, fault, lives)
	}
	return true
}

// fill does some of what writers do, and what each cut needs.
func (w *writer) fill() error {
	for range 12 {
		if err := w.act(); err != nil {
			return err
		}
	}
	for _, part := range []string{"file", w.part()} { // a file is published in each life
		p := w.next(part)
		p.callback = "done"
		w.sent = append(w.sent, p)
		if err := errors.Join(w.send(p, ""), w.nonsense(), w.change(0)); err != nil {
			return err
		}
	}
	return nil
}

// live lets a daemon do what there is, until it is done or dies at the fault.
func (s *site) live(t *testing.T, fault string) {
	t.Helper()
	v, err := s.start(fault, "--once")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	v.live(ctx, time.Hour)
	if v.failed() || ctx.Err() != nil {
		t.Fatalf("the daemon gave up: %v; see %s", v.err, s.path("log"))
	}
}

// check holds what is there after the cut to what was said before it, and to
// what the ledger says, which is all there is to go by then.
func (c *cutter) check(t *testing.T, before, after *site, b *book) {
	t.Helper()
	ids, err := before.acknowledged()
	if err != nil {
		t.Fatal(err)
	}
	for id := range ids {
		if _, err := after.read(id); err != nil {
			t.Errorf("task %s was acknowledged before the power cut: %v", id, err)
		}
	}
	c.acknowledged += len(ids)
	after.checkDiary(t)
	after.audit(t)
	after.checkArtifacts(t)
	books, err := ledger.OpenReader(after.path("state/ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer books.Close()
	queue, err := concatenate(after.path("box/queues/*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range b.promises {
		rows, err := books.Revisions(t.Context(), envelope.ID(p.id))
		if err != nil {
			t.Fatal(err)
		}
		answers := c.checkResults(t, after, rows)
		if called := strings.Count(queue, fmt.Sprintf(`"task_id":%q`, p.id)); p.callback != "" && called < answers {
			t.Errorf("task %s: %d lines in the queue for %d results", p.id, called, answers)
		} else if p.callback != "" {
			c.callbacks += answers
		}
	}
	after.checkLost(t, b, nil)
	c.checkDeadLetters(t, before, after, b)
}

// checkResults looks for the result of each revision that has one, and returns
// how many have.
func (c *cutter) checkResults(t *testing.T, after *site, rows []task.Task) (answers int) {
	t.Helper()
	for _, row := range rows {
		replaced := row.Status == envelope.Stopped // before it started, and so without a result
		if row.State != task.Done || !row.Put || !row.Delivered || !replaced && (row.Replaces || row.ResultSum == "") {
			t.Errorf("task %s, revision %d: %+v; want nothing left to do", row.ID, row.Revision, row)
		}
		if replaced {
			continue
		}
		answers++
		location := after.result(string(row.ID))
		if !row.Latest {
			c.history++
			location = after.path("state/history/" + row.ID.Dir() + fmt.Sprintf("/%d*.json", row.Revision))
		}
		if !holds(location, row.ResultSum) {
			t.Errorf("task %s, revision %d: its result is not in %s", row.ID, row.Revision, location)
		}
	}
	return answers
}

// holds reports whether a file that matches the pattern has that sum.
func holds(pattern, sum string) bool {
	paths, err := filepath.Glob(pattern)
	return err == nil && slices.ContainsFunc(paths, func(path string) bool {
		text, err := os.ReadFile(path)
		digest := sha256.Sum256(text)
		return err == nil && hex.EncodeToString(digest[:]) == sum
	})
}

// checkDeadLetters looks for each line that cannot become a task, and behind which
// the ledger says that reading goes on.
func (c *cutter) checkDeadLetters(t *testing.T, before, after *site, b *book) {
	t.Helper()
	offset, err := after.offset(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(before.tasks("p.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	deadLetters, err := concatenate(after.path("box/rejected/*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range b.letters {
		if !strings.Contains(string(lines[:offset]), word) {
			continue // it was not read
		}
		c.letters++
		if !strings.Contains(deadLetters, word) {
			t.Errorf("line %q was read before the power cut, and is not in rejected/", word)
		}
	}
}

// offset is where reading goes on, as the ledger says.
func (s *site) offset(ctx context.Context) (int64, error) {
	books, err := ledger.OpenReader(s.path("state/ledger.db"))
	if err != nil {
		return 0, err
	}
	defer books.Close()
	files, err := books.Files(ctx)
	if err != nil || len(files) == 0 {
		return 0, err
	}
	return files[0].Offset, nil
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
