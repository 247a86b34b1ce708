package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

const (
	lookAfter = 256                    // commits after which the write-ahead log may be long
	lookBytes = 8 << 20                // or bytes of bodies in them
	longLog   = 2000                   // frames of a log that is begun anew
	idleAfter = 500 * time.Millisecond // how long nothing is committed before the log is emptied
)

// A checkpointer brings what the write-ahead log has to the main file, by a connection of its
// own, while commits go on.
type checkpointer struct {
	db      *sql.DB
	conn    *sql.Conn
	due     chan struct{} // has a token when the log may be long
	idle    *time.Timer   // runs while the log isn't empty
	commits int           // since it was due; only the writer's goroutine uses it
	bytes   int           // of bodies in them; only the writer's goroutine uses it
	empty   bool          // nothing was committed since the log was emptied; only the writer's goroutine uses it
	looked  uint64        // the last commit when the timer fired last; only the writer's goroutine uses it
}

func openCheckpointer(path string) (*checkpointer, error) {
	db, err := sql.Open("sqlite", checkpointURI(path))
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(background)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &checkpointer{db: db, conn: conn, due: make(chan struct{}, 1), idle: time.NewTimer(idleAfter)}, nil
}

func (c *checkpointer) close() error {
	c.idle.Stop()
	return errors.Join(c.conn.Close(), c.db.Close())
}

// committed has the log looked at in time, after a commit with so many bytes of bodies. The
// writer calls it.
func (c *checkpointer) committed(bytes int) {
	if c.empty {
		c.empty = false
		c.idle.Reset(idleAfter)
	}
	c.commits++
	c.bytes += bytes
	if c.commits < lookAfter && c.bytes < lookBytes {
		return
	}
	c.commits, c.bytes = 0, 0
	select {
	case c.due <- struct{}{}:
	default: // it is due already
	}
}

// serveCheckpoints makes checkpoints as they become due, until the ledger is closed. After one
// that fails, the next one tries again.
func (l *Ledger) serveCheckpoints() {
	for {
		select {
		case <-l.checkpoints.due:
			_ = l.shortenLog()
		case <-l.checkpoints.idle.C:
			if !l.emptyIdleLog() {
				l.checkpoints.idle.Reset(idleAfter)
			}
		case <-l.closing:
			return
		}
	}
}

// shortenLog begins a long log anew. Most of it is copied while commits go on.
func (l *Ledger) shortenLog() error {
	done, err := checkpoint(background, l.checkpoints.conn, "PASSIVE")
	if err != nil || done.frames < longLog {
		return err
	}
	l.betweenGroups(func() { _, err = l.beginLogAnew("RESTART") })
	return err
}

// emptyIdleLog empties a log to which nothing was added since it was called last.
func (l *Ledger) emptyIdleLog() (emptied bool) {
	idle := false
	l.betweenGroups(func() {
		idle = l.checkpoints.looked == l.writer.committed.number
		l.checkpoints.looked = l.writer.committed.number
	})
	if !idle {
		return false
	}
	if _, err := checkpoint(background, l.checkpoints.conn, "PASSIVE"); err != nil {
		return false
	}
	l.betweenGroups(func() {
		var err error
		emptied, err = l.emptyLog()
		emptied = emptied && err == nil
	})
	return emptied
}

// emptyLog leaves nothing in the log, unless a program reads. The writer calls it.
func (l *Ledger) emptyLog() (emptied bool, err error) {
	emptied, err = l.beginLogAnew("TRUNCATE")
	l.checkpoints.empty = emptied
	return emptied, err
}

// beginLogAnew has the next commit begin the log anew, unless a program reads. The
// writer calls it.
func (l *Ledger) beginLogAnew(mode string) (begun bool, err error) {
	done, err := checkpoint(background, l.checkpoints.conn, mode)
	begun = err == nil && done.all()
	if begun {
		l.writer.logEmptied()
	}
	return begun, err
}

// progress is what a checkpoint has done.
type progress struct {
	busy           bool // another program reads, or writes
	frames, copied int  // of the log
}

// all reports whether the main file has everything, and the log begins anew.
func (p progress) all() bool { return !p.busy && p.frames == p.copied }

func checkpoint(ctx context.Context, q querier, mode string) (p progress, err error) {
	err = q.QueryRowContext(ctx, "PRAGMA wal_checkpoint("+mode+")").Scan(&p.busy, &p.frames, &p.copied)
	return p, err
}
