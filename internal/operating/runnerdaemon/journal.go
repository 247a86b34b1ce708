package runnerdaemon

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // the database/sql driver "sqlite"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/stores/dirtree"
	"mailboxd/internal/testtools/fault"
)

// A record is what the journal has of a token.
type record struct {
	Token fleet.Token
	State fleet.RunState
	Job   []byte // a fleet.Job as JSON
	RunID string // names the run directory; "" until the work was read
	Boot  string // runner.Evidence of the run directory, when it began
	Done  []byte // the outcome that waits for the owner, a fleet.Done as JSON; nil: none yet
}

// A journal has the tokens of a runner. What put and forget return nil for survives a power cut. Calls that
// come while one is written share the next sync.
type journal struct {
	db   *sql.DB
	runs string // the directory of the run directories

	putToken, dropToken, putWord *sql.Stmt // made once: a run needs several

	incarnation string

	mu      sync.Mutex
	changes int64 // committed
	writing bool
	waiting []change
}

// A change is one call of put or forget.
type change struct {
	put    *record
	forget []fleet.Token
	meta   map[string]string
	done   chan error
}

const journalSchema = `
CREATE TABLE IF NOT EXISTS tokens (
	token TEXT PRIMARY KEY, state TEXT NOT NULL, job BLOB, run TEXT NOT NULL, boot TEXT NOT NULL, done BLOB
) STRICT;
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;`

// openJournal opens the journal of a runner, or makes a new one with an incarnation of its own. The open is
// a change too.
func openJournal(path string) (*journal, error) {
	at := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{
		"_txlock": {"immediate"}, "_journal_mode": {"WAL"}, "_pragma": {"busy_timeout(5000)", "synchronous(FULL)"},
	}.Encode()}
	db, err := sql.Open("sqlite", at.String())
	if err != nil {
		return nil, fmt.Errorf("open token journal: %w", err)
	}
	db.SetMaxOpenConns(1)
	j := &journal{db: db, runs: filepath.Join(filepath.Dir(path), "runs")}
	if err := j.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("open token journal %s: %w", path, err), db.Close())
	}
	return j, nil
}

func (j *journal) begin() error {
	if _, err := j.db.Exec(journalSchema); err != nil {
		return err
	}
	for query, to := range map[string]**sql.Stmt{
		"INSERT OR REPLACE INTO tokens VALUES (?, ?, ?, ?, ?, ?)": &j.putToken,
		"DELETE FROM tokens WHERE token = ?":                      &j.dropToken,
		"INSERT OR REPLACE INTO meta VALUES (?, ?)":               &j.putWord,
	} {
		var err error
		if *to, err = j.db.Prepare(query); err != nil {
			return err
		}
	}
	count, err := j.word("changes")
	if err != nil {
		return err
	}
	j.changes, _ = strconv.ParseInt(count, 10, 64)
	if j.incarnation, err = j.word("incarnation"); err != nil {
		return err
	}
	if j.incarnation == "" {
		return j.renew()
	}
	return j.commit(change{})
}

// renew gives the journal another incarnation, because the old one is not whole.
func (j *journal) renew() error {
	j.incarnation = strings.ToLower(rand.Text())
	return j.commit(change{meta: map[string]string{"incarnation": j.incarnation}})
}

// word returns a value of the table meta; "" if it has none.
func (j *journal) word(name string) (value string, err error) {
	err = j.db.QueryRow("SELECT value FROM meta WHERE name = ?", name).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, err
}

// records returns all tokens.
func (j *journal) records() (all []record, err error) {
	rows, err := j.db.Query("SELECT token, state, job, run, boot, done FROM tokens ORDER BY rowid")
	if err != nil {
		return nil, fmt.Errorf("read token journal: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var r record
		if err := rows.Scan(&r.Token, &r.State, &r.Job, &r.RunID, &r.Boot, &r.Done); err != nil {
			return nil, fmt.Errorf("read token journal: %w", err)
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// outcome returns the outcome of a token.
func (j *journal) outcome(token fleet.Token) (done []byte, err error) {
	err = j.db.QueryRow("SELECT done FROM tokens WHERE token = ?", string(token)).Scan(&done)
	return done, err
}

// put makes a record durable.
func (j *journal) put(r record) error { return j.commit(change{put: &r}) }

// forget removes records.
func (j *journal) forget(tokens ...fleet.Token) error { return j.commit(change{forget: tokens}) }

// set makes a value of the table meta durable.
func (j *journal) set(name, value string) error {
	return j.commit(change{meta: map[string]string{name: value}})
}

// count returns how many changes were committed.
func (j *journal) count() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.changes
}

// commit writes a change. One caller writes for all that wait.
func (j *journal) commit(c change) error {
	c.done = make(chan error, 1)
	j.mu.Lock()
	j.waiting = append(j.waiting, c)
	if j.writing {
		j.mu.Unlock()
		return <-c.done
	}
	j.writing = true
	for len(j.waiting) > 0 {
		batch, next := j.waiting, j.changes+int64(len(j.waiting))
		j.waiting = nil
		j.mu.Unlock()
		err := j.write(batch, next)
		j.mu.Lock()
		if err == nil {
			j.changes = next
		}
		for _, one := range batch {
			one.done <- err
		}
	}
	j.writing = false
	j.mu.Unlock()
	return <-c.done
}

// write commits a batch of changes.
func (j *journal) write(batch []change, changes int64) error {
	tx, err := j.db.BeginTx(context.Background(), nil)
	if err != nil {
		return fmt.Errorf("write token journal: %w", err)
	}
	if slices.ContainsFunc(batch, change.removed) {
		err = syncRuns(j.runs)
	}
	for _, c := range batch {
		if err = errors.Join(err, j.change(tx, c)); err != nil {
			break
		}
	}
	if err == nil {
		_, err = tx.Stmt(j.putWord).Exec("changes", strconv.FormatInt(changes, 10))
	}
	fault.Point("journal-uncommitted")
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		_ = tx.Rollback()
		return fmt.Errorf("write token journal: %w", err)
	}
	fault.Point("journal-written")
	return nil
}

// removed reports whether the journal doesn't name a run directory any more after a change, because it was removed.
func (c change) removed() bool {
	return len(c.forget) > 0 || c.put != nil && c.put.State == fleet.Voided
}

// syncRuns has removed run directories stay removed. Not every file system orders that before a later sync of the journal.
func syncRuns(dir string) error {
	if err := dirtree.SyncDir(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil // no run began yet
}

// change writes a change.
func (j *journal) change(tx *sql.Tx, c change) (err error) {
	if r := c.put; r != nil {
		_, err = tx.Stmt(j.putToken).Exec(string(r.Token), string(r.State), r.Job, r.RunID, r.Boot, r.Done)
	}
	for _, token := range c.forget {
		if err == nil {
			_, err = tx.Stmt(j.dropToken).Exec(string(token))
		}
	}
	for name, value := range c.meta {
		if err == nil {
			_, err = tx.Stmt(j.putWord).Exec(name, value)
		}
	}
	return err
}

func (j *journal) close() error { return j.db.Close() }
