// Package index answers questions about tasks from SQLite. It is derived from the journal:
// it has everything up to a mark, and can be deleted and built again.
package index

import (
	"context"
	"database/sql"
	"database/sql/driver"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"modernc.org/sqlite"

	"mailboxd/internal/journal"
)

//go:embed schema.sql
var schema string

// version is that of the schema. An index of another one is built again.
const version = 100

// An Index is the index of one journal. One goroutine at a time may call Apply and Close;
// the Reader may be used beside it.
type Index struct {
	*Reader
	path    string
	db      *sql.DB
	conn    *sql.Conn // the one that writes
	batches [tableCount]batch
	mark    journal.Position
}

// Open opens the index at an absolute path. It makes an empty one in the place of one that
// is not there, can't be read, or has another version.
func Open(path string) (x *Index, err error) {
	if x, err = open(path); err == nil || !unusable(err) {
		return x, wrap(path, err)
	}
	if err = Remove(path); err == nil {
		x, err = open(path)
	}
	return x, wrap(path, err)
}

func wrap(path string, err error) error {
	if err != nil {
		return fmt.Errorf("open index %s: %w", path, err)
	}
	return nil
}

// Remove deletes an index.
func Remove(path string) (err error) {
	for _, end := range []string{"", "-wal", "-shm"} {
		if failed := os.Remove(path + end); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// errVersion says that an index has the schema of another version.
var errVersion = errors.New("it has another version")

// The result codes by which SQLite says that the bytes are wrong: a table or column that is
// not there, a malformed page, no database at all.
const (
	sqliteError   = 1
	sqliteCorrupt = 11
	sqliteNotADB  = 26
)

// unusable reports whether an index has to be built again.
func unusable(err error) bool {
	coded, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return errors.Is(err, errVersion)
	}
	code := coded.Code() & 0xff // the primary code
	return code == sqliteError || code == sqliteCorrupt || code == sqliteNotADB
}

func open(path string) (*Index, error) {
	db, err := sql.Open("sqlite", writeURI(path))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	x := &Index{path: path, db: db, conn: conn}
	for of := range x.batches {
		x.batches[of] = batch{definition: &definitions[of], upserts: map[int]driver.Stmt{}}
	}
	if err = x.prepare(); err == nil {
		x.Reader, err = newReader(path)
	}
	if err != nil {
		return nil, errors.Join(err, x.release())
	}
	return x, nil
}

// prepare creates the tables of a new index, and reads the mark.
func (x *Index) prepare() error {
	var have int
	if err := x.conn.QueryRowContext(context.Background(), "PRAGMA user_version").Scan(&have); err != nil {
		return err
	}
	if have == 0 {
		err := x.exec(fmt.Sprintf("BEGIN IMMEDIATE;\n%s\nINSERT INTO mark VALUES (0, '', 0, 0);\nPRAGMA user_version = %d;\nCOMMIT", schema, version))
		if err != nil {
			return err
		}
		have = version
	}
	if have != version {
		return errVersion
	}
	mark, err := scanMark(x.conn.QueryRowContext(context.Background(), markQuery))
	x.mark = mark
	return err
}

const markQuery = "SELECT n, hash, segment, offset FROM mark"

func scanMark(r row) (p journal.Position, err error) {
	var n int64
	var hash string
	if err = r.Scan(&n, &hash, &p.Segment, &p.Offset); err != nil {
		return p, err
	}
	p.N = uint64(n)
	if hash != "" {
		var digest []byte
		if digest, err = hex.DecodeString(hash); err == nil && len(digest) == len(p.Hash) {
			p.Hash = journal.Hash(digest)
		}
	}
	return p, err
}

// Mark returns the position in the journal up to which the index has everything.
func (x *Index) Mark() journal.Position { return x.mark }

// Apply writes rows, the last one of each key, and moves the mark. It is not synced: what a
// crash takes back is in the journal.
func (x *Index) Apply(changes []Change, mark journal.Position) error {
	err := x.exec("BEGIN IMMEDIATE")
	if err == nil {
		err = x.write(changes)
	}
	if err == nil {
		_, err = x.conn.ExecContext(context.Background(), "UPDATE mark SET n = ?, hash = ?, segment = ?, offset = ?",
			int64(mark.N), mark.Hash.String(), mark.Segment, mark.Offset)
	}
	if err == nil {
		err = x.exec("COMMIT")
	}
	if err != nil {
		_ = x.exec("ROLLBACK") // SQLite may have done so; a later BEGIN says otherwise
		return fmt.Errorf("write index: %w", err)
	}
	x.mark = mark
	return nil
}

func (x *Index) write(changes []Change) error {
	for i := range x.batches {
		x.batches[i].waiting = x.batches[i].waiting[:0]
	}
	return x.conn.Raw(func(raw any) error {
		conn := raw.(driver.Conn)
		for _, c := range changes {
			if err := x.batches[c.of].add(conn, c); err != nil {
				return err
			}
		}
		for i := range x.batches {
			if err := x.batches[i].flush(conn); err != nil {
				return err
			}
		}
		return nil
	})
}

func (x *Index) exec(text string) error {
	_, err := x.conn.ExecContext(context.Background(), text)
	return err
}

// Close closes the index.
func (x *Index) Close() error {
	if err := errors.Join(x.Reader.Close(), x.release()); err != nil {
		return fmt.Errorf("close index: %w", err)
	}
	return nil
}

func (x *Index) release() error {
	err := x.conn.Raw(func(any) (err error) {
		for i := range x.batches {
			err = errors.Join(err, x.batches[i].close())
		}
		return err
	})
	return errors.Join(err, x.conn.Close(), x.db.Close())
}

// A batch writes rows of one table, many in one statement. It uses the driver's statements:
// database/sql copies each value twice.
type batch struct {
	*definition
	waiting []driver.NamedValue // row after row
	upserts map[int]driver.Stmt // by the number of rows
	gone    driver.Stmt
}

// steps are how many rows one statement writes, so that a few statements do for any number.
var steps = [...]int{64, 8, 1}

func (b *batch) add(conn driver.Conn, c Change) error {
	if c.gone() {
		if err := b.flush(conn); err != nil { // the row may be among those that wait
			return err
		}
		return run(conn, &b.gone, b.remove, named(nil, c.values))
	}
	b.waiting = named(b.waiting, c.values)
	if len(b.waiting) < steps[0]*len(b.columns) {
		return nil
	}
	return b.flush(conn)
}

// flush writes the rows that wait.
func (b *batch) flush(conn driver.Conn) error {
	width, left := len(b.columns), b.waiting
	for _, n := range steps {
		for ; len(left) >= n*width; left = left[n*width:] {
			stmt := b.upserts[n]
			if err := run(conn, &stmt, func() string { return b.upsert(n) }, left[:n*width]); err != nil {
				return err
			}
			b.upserts[n] = stmt
		}
	}
	clear(b.waiting)
	b.waiting = b.waiting[:0]
	return nil
}

func named(list []driver.NamedValue, values []value) []driver.NamedValue {
	for _, v := range values {
		list = append(list, driver.NamedValue{Value: v.boxed()})
	}
	return list
}

// run runs a statement, and prepares it the first time.
func run(conn driver.Conn, stmt *driver.Stmt, text func() string, values []driver.NamedValue) (err error) {
	if *stmt == nil {
		if *stmt, err = conn.Prepare(text()); err != nil {
			*stmt = nil // not a nil statement in an interface that isn't nil
			return err
		}
	}
	for i := range values {
		values[i].Ordinal = i + 1
	}
	_, err = (*stmt).(driver.StmtExecContext).ExecContext(context.Background(), values)
	return err
}

func (b *batch) close() (err error) {
	for _, stmt := range b.upserts {
		err = errors.Join(err, stmt.Close())
	}
	if b.gone != nil {
		err = errors.Join(err, b.gone.Close())
	}
	return err
}

// writeURI names the file for the connection that writes. A crash may take commits back, and
// no more: synchronous is NORMAL, and the journal has them.
func writeURI(path string) string {
	return uri(path, url.Values{
		"_txlock":       {"immediate"},
		"_journal_mode": {"WAL"}, // after the others
		"_pragma":       {"busy_timeout(5000)", "page_size(8192)", "synchronous(NORMAL)", "wal_autocheckpoint(2000)", "cache_size(-8000)"},
	})
}

// readURI names the file for connections that only read.
func readURI(path string) string {
	return uri(path, url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)", "temp_store(MEMORY)"}})
}

// uri spells a path so that SQLite finds no options of its own in it.
func uri(path string, options url.Values) string {
	u := url.URL{Scheme: "file", Path: path, RawQuery: options.Encode()}
	return u.String()
}

// NewReader returns another reader of the index. The caller closes it.
func (x *Index) NewReader() (*Reader, error) { return newReader(x.path) }

// MarkOf returns the mark of the index at a path, without changing it.
func MarkOf(path string) (journal.Position, error) {
	if _, err := os.Stat(path); err != nil {
		return journal.Position{}, err // SQLite would say only that it can't
	}
	r, err := newReader(path)
	if err != nil {
		return journal.Position{}, err
	}
	mark, _, err := first(context.Background(), r.read, scanMark, markQuery)
	return mark, errors.Join(err, r.Close())
}

// Verify is for later.
func (r *Reader) Verify(context.Context) error { return nil }
