package ledger_test

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/stores/ledger"
	"mailboxd/internal/stores/seal"
)

var sealKey = seal.PrivateKey(ed25519.NewKeyFromSeed(make([]byte, 32)))

func signer() (seal.Signer, error) { return sealKey, nil }

// logMany adds events, some of them about a task, and each few of them in a transaction.
func logMany(t testing.TB, l *ledger.Ledger, n int, at time.Time) {
	t.Helper()
	for i := 0; i < n; {
		update(t, l, func(tx *ledger.Tx) error {
			for range 7 {
				if i++; i <= n {
					if err := tx.Log(task.Event{Time: at, Kind: "daemon.paused", Data: fmt.Appendf(nil, `{"n":%d}`, i)}); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}

func audit(t testing.TB, path string, anchored ...seal.Seal) seal.Report {
	t.Helper()
	r, err := ledger.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	var c *seal.Checker
	err = r.Audit(context.Background(), func(seals []seal.Seal, prunes []seal.Prune) *seal.Checker {
		c = seal.NewChecker(seal.Chain{Seals: seals, Prunes: prunes, Keys: seal.Keys{sealKey.Key(): sealKey.Public()}, Anchored: anchored})
		return c
	})
	if err != nil {
		t.Fatal(err)
	}
	return c.Report()
}

func states(r seal.Report) string {
	var all []string
	for _, p := range r.Parts {
		all = append(all, fmt.Sprintf("%s %d-%d", p.State, p.First, p.Last))
	}
	if r.Difference != nil {
		all = append(all, fmt.Sprintf("difference in %d-%d", r.Difference.First, r.Difference.Last))
	}
	return strings.Join(all, ", ")
}

// sealed makes a closed ledger with 2,503 events, of which 2,004 are sealed by number, and 2,501 in all. It
// returns its seals.
func sealed(t *testing.T) (path string, seals []seal.Seal) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "ledger.db")
	l, _, err := ledger.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	update(t, l, func(tx *ledger.Tx) error { return accept(tx, newTask(1), []byte("{}")) }) // before there is a signer
	ctx, announced := context.Background(), 0
	if err := l.SealWith(ctx, seal.Writer{Signer: signer, Sealed: func() { announced++ }}); err != nil {
		t.Fatal(err)
	}
	update(t, l, func(tx *ledger.Tx) error { return accept(tx, newTask(2), []byte("{}")) })
	logMany(t, l, 2498, noon)
	update(t, l, func(tx *ledger.Tx) error {
		return tx.Log(task.Event{Time: noon, Kind: "task.note", Task: newTask(1).ID, Revision: 1}) // without its Seq
	})
	if seals, err = l.SealsSince(ctx, 0); err != nil || len(seals) != 2 || announced != 2 {
		t.Fatalf("%d seals, %d announced, %v; want one at each 1,000 events", len(seals), announced, err)
	}
	if err := l.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	logMany(t, l, 2, noon)
	seals, _ = l.SealsSince(ctx, 0)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return path, seals
}

func alter(t *testing.T, path, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err == nil {
		_, err = db.Exec(query)
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnAuditFindsAChangeOfASealedRange(t *testing.T) {
	for name, test := range map[string]struct{ query, want, anchored string }{
		"nothing": {"SELECT 1", "sealed 1-2501, unsealed 2502-2503", ""},
		"update":  {`UPDATE events SET data = '{"n":0}' WHERE seq = 1500`, "difference in 1004-2004", ""},
		"time":    {`UPDATE events SET time = time + 1 WHERE seq = 1500`, "difference in 1004-2004", ""},
		"task":    {`UPDATE tasks SET id = 'other' WHERE seq = 1`, "difference in 1-1003", ""},
		"delete":  {`DELETE FROM events WHERE seq = 1500`, "difference in 1004-2004", ""},
		"insert":  {`INSERT INTO events VALUES (0, 1, 'a', NULL, '{}')`, "difference in 0-0", ""},
		"swap": {
			`UPDATE events SET seq = CASE seq WHEN 3 THEN -4 ELSE -3 END WHERE seq IN (3, 4);
			UPDATE events SET seq = -seq WHERE seq < 0`, "difference in 1-1003", "",
		},
		"a seal":     {`DELETE FROM seals WHERE first = 1004`, "difference in 1004-2004", ""},
		"cut events": {`DELETE FROM events WHERE seq > 1100`, "difference in 1004-2004", ""},
		"cut all": {
			`DELETE FROM events WHERE seq > 1003; DELETE FROM seals WHERE first > 1003`,
			"sealed 1-1003", "sealed 1-1003, difference in 1004-2004",
		},
		"no record": {`INSERT INTO pruned VALUES (5, zeroblob(32)); DELETE FROM events WHERE seq = 5`, "difference in 1-1003", ""},
		"the old seq": {
			`DELETE FROM events WHERE seq = 1500;
			INSERT INTO events SELECT 1500, time, kind, NULL, '{}' FROM events WHERE seq = 1501`, "difference in 1004-2004", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, seals := sealed(t)
			alter(t, path, test.query)
			if test.anchored == "" {
				test.anchored = test.want
			}
			if got := states(audit(t, path)); !strings.HasSuffix(got, test.want) {
				t.Errorf("audit: %s; want %s", got, test.want)
			}
			if got := states(audit(t, path, seals...)); !strings.HasSuffix(got, test.anchored) {
				t.Errorf("audit with an anchor: %s; want %s", got, test.anchored)
			}
		})
	}
}

// drop removes all events from before a time.
func drop(t *testing.T, l *ledger.Ledger, before time.Time) (dropped int) {
	t.Helper()
	for next, more := int64(0), true; more; more = next > 0 {
		after, n := next, 0
		update(t, l, func(tx *ledger.Tx) (err error) {
			next, n, err = tx.DropEvents(before, after, 1000)
			return err
		})
		dropped += n
	}
	return dropped
}

func TestRetentionLeavesARecordOfEventsThatItRemoves(t *testing.T) {
	path, seals := sealed(t)
	l, _, err := ledger.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := drop(t, l, noon.Add(time.Hour)); n != 0 {
		t.Errorf("%d events of a sealed ledger were removed without a signer", n)
	}
	if err := l.SealWith(context.Background(), seal.Writer{Signer: signer}); err != nil {
		t.Fatal(err)
	}
	if n := drop(t, l, noon.Add(time.Hour)); n != 2500 { // two tasks are open
		t.Errorf("%d events were removed", n)
	}
	logMany(t, l, 2, noon.Add(time.Hour))
	if err := errors.Join(l.Seal(context.Background()), l.Close()); err != nil {
		t.Fatal(err)
	}
	const want = "partly 1-1003, pruned 1004-2004, partly 2005-2501, pruned 2502-2503, sealed 2504-2505"
	if got := states(audit(t, path, seals...)); got != want {
		t.Errorf("audit: %s; want %s", got, want)
	}
	for name, query := range map[string]string{
		"a row without a record": `DELETE FROM events WHERE seq = 2504`,
		"a kept hash":            `DELETE FROM pruned WHERE seq = 500`,
		"a changed hash":         `UPDATE pruned SET hash = zeroblob(32) WHERE seq = 500`,
		"a record":               `DELETE FROM prunes WHERE number = 2`,
		"a row that is back":     `INSERT INTO events VALUES (1500, 1, 'a', NULL, '{}')`,
	} {
		copied := filepath.Join(t.TempDir(), "ledger.db")
		r, err := ledger.OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(r.WriteSnapshot(context.Background(), copied), r.Close()); err != nil {
			t.Fatal(err)
		}
		alter(t, copied, query)
		if got := states(audit(t, copied)); !strings.Contains(got, "difference") {
			t.Errorf("%s: %s; want a difference", name, got)
		}
	}
}

func TestEventsGoOnWithoutASignature(t *testing.T) {
	l := open(t)
	broken := errors.New("no key")
	err, calls := broken, 0
	if err := l.SealWith(context.Background(), seal.Writer{Signer: func() (seal.Signer, error) { calls++; return sealKey, err }}); err != nil {
		t.Fatal(err)
	}
	logMany(t, l, 1500, noon)
	if calls != 1 {
		t.Errorf("the signer was asked %d times; want once", calls)
	}
	if err := l.Seal(context.Background()); !errors.Is(err, broken) {
		t.Errorf("Seal() = %v; want the error of the signer", err)
	}
	err = nil
	if err := l.Seal(context.Background()); err != nil {
		t.Error(err)
	}
	if seals, _ := l.SealsSince(context.Background(), 0); len(seals) != 1 || seals[0].Last != 1500 {
		t.Errorf("seals = %+v; want one of all 1,500 events", seals)
	}
}

func TestATransactionThatFailsSealsNothing(t *testing.T) {
	l := open(t)
	if err := l.SealWith(context.Background(), seal.Writer{Signer: signer}); err != nil {
		t.Fatal(err)
	}
	logMany(t, l, 990, noon)
	broken := errors.New("no")
	err := l.Update(context.Background(), func(tx *ledger.Tx) error {
		for range 20 {
			_ = tx.Log(task.Event{Time: noon, Kind: "daemon.paused"})
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	logMany(t, l, 14, noon)
	seals, _ := l.SealsSince(context.Background(), 0)
	if len(seals) != 1 || seals[0].Last < 1000 {
		t.Errorf("seals = %+v", seals)
	}
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := l.WriteSnapshot(context.Background(), path); err != nil {
		t.Fatal(err)
	}
	if got := audit(t, path); got.Difference != nil {
		t.Error(got.Difference)
	}
}

func TestAChainAfterARestorationNamesTheLastKnownHead(t *testing.T) {
	path, seals := sealed(t)
	l, _, err := ledger.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	update(t, l, func(tx *ledger.Tx) error { return tx.NoteRestored(noon, noon) })
	lost, _ := seal.Seal{First: 2502, Last: 3000, Previous: seals[2].Hash, Hash: seal.Hash{1}, Time: seals[2].Time + 9}.Signed(sealKey)
	err = l.SealWith(context.Background(), seal.Writer{Signer: signer, Known: lost})
	if err := errors.Join(err, l.Seal(context.Background()), l.Close()); err != nil {
		t.Fatal(err)
	}
	r := audit(t, path, append(seals, lost)...)
	if r.Difference != nil || len(r.Starts) != 1 || r.Starts[0].Names != lost.Hash {
		t.Errorf("report = %+v; want a chain that starts with the last head", r)
	}
}

// BenchmarkAudit is for each event; want less than 3,333 ns.
func BenchmarkAudit(b *testing.B) {
	path := filepath.Join(b.TempDir(), "ledger.db")
	fill(b, path, 50_000)
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(OFF)")
	if err != nil {
		b.Fatal(err)
	}
	_, err = db.Exec(`INSERT INTO events (time, kind, task, data) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
		SELECT 1700000000000000 + i, 'task.accepted', 1 + i / 4 % 50000, '{"file":"tasks/a.jsonl","from":"somebody"}' FROM n`)
	if err := errors.Join(err, db.Close()); err != nil {
		b.Fatal(err)
	}
	l, _, err := ledger.Open(path)
	if err == nil {
		err = errors.Join(l.SealWith(context.Background(), seal.Writer{Signer: signer}), l.Seal(context.Background()), l.Close())
	}
	if err != nil {
		b.Fatal(err)
	}
	before := processorTime(b)
	for b.Loop() {
		if r := audit(b, path); r.Difference != nil || r.Events != 200_000 {
			b.Fatal(r)
		}
	}
	b.ReportMetric(float64(processorTime(b)-before)/200_000/float64(b.N), "cpu-ns/event")
	b.ReportMetric(200_000*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// processorTime is what this process has used, in nanoseconds: of use where other programs run meanwhile.
func processorTime(b *testing.B) int64 {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
