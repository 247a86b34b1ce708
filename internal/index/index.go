// Package index answers questions about tasks from SQLite. It is derived from the journal:
// it has everything up to a mark, and can be deleted and built again.
package index

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"syscall"

	"modernc.org/sqlite"

	"mailboxd/internal/fault"
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
	batches batches
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
		return fmt.Errorf("open index %s: %w", path, withErrno(err))
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

// The result codes by which SQLite says that it could not write.
const (
	sqliteBusy     = 5 // a foreign program has it locked
	sqliteReadOnly = 8
	sqliteIOErr    = 10
	sqliteFull     = 13
	sqliteCantOpen = 14
)

// unusable reports whether an index has to be built again.
func unusable(err error) bool {
	return errors.Is(err, errVersion) || hasCode(err, sqliteError, sqliteCorrupt, sqliteNotADB)
}

// CannotWrite reports whether an error says that the index can't be written now.
func CannotWrite(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || hasCode(err, sqliteBusy, sqliteReadOnly, sqliteIOErr, sqliteFull, sqliteCantOpen)
}

func hasCode(err error, codes ...int) bool {
	coded, ok := errors.AsType[*sqlite.Error](err)
	return ok && slices.Contains(codes, coded.Code()&0xff) // the primary code
}

// withErrno adds to an error of SQLite that the disk is full.
func withErrno(err error) error {
	if hasCode(err, sqliteFull) {
		return fmt.Errorf("%w: %w", err, syscall.ENOSPC)
	}
	return err
}

func open(path string) (*Index, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite would let others read it
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", writeURI(path))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	x := &Index{path: path, db: db, conn: conn, batches: newBatches(&definitions)}
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
		if err := x.create(); err != nil {
			return err
		}
		have = version
	}
	if err := checkVersion(have); err != nil {
		return err
	}
	mark, err := scanMark(x.conn.QueryRowContext(context.Background(), markQuery))
	x.mark = mark
	if err == nil { // a reader does not have to create the files beside it
		err = x.conn.Raw(func(raw any) error {
			_, err := raw.(sqlite.FileControl).FileControlPersistWAL("main", 1)
			return err
		})
	}
	return err
}

// create makes the tables of a new index.
func (x *Index) create() error {
	return x.exec(fmt.Sprintf("BEGIN IMMEDIATE;\n%s\nINSERT INTO mark VALUES (0, '', 0, 0);\nPRAGMA user_version = %d;\nCOMMIT", schema, version))
}

func checkVersion(have int) error {
	switch {
	case have > version:
		return fmt.Errorf("the index %w", journal.ErrNewer)
	case have < version:
		return errVersion
	}
	return nil
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
	err := fault.Read("write index")
	if err == nil {
		err = x.exec("BEGIN IMMEDIATE")
	}
	if err == nil {
		err = x.batches.write(x.conn, changes)
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
		return fmt.Errorf("write index: %w", withErrno(err))
	}
	x.mark = mark
	return nil
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
	_ = x.exec("PRAGMA journal_size_limit = 0") // so that little is left of the write-ahead log
	return errors.Join(x.batches.close(x.conn), x.conn.Close(), x.db.Close())
}

// writeURI names the file for the connection that writes. A crash may take commits back, and
// no more: synchronous is NORMAL, and the journal has them.
func writeURI(path string) string {
	return uri(path, url.Values{
		"_txlock":       {"immediate"},
		"_journal_mode": {"WAL"}, // after the others
		"_pragma":       {"busy_timeout(250)", "page_size(8192)", "synchronous(NORMAL)", "wal_autocheckpoint(2000)", "cache_size(-8000)"},
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

// NewTail returns a tail of the index. The caller closes it before the index.
func (x *Index) NewTail() (*Tail, error) {
	t, err := newTail(x.path)
	if err == nil {
		t.Journal = x.Journal
	}
	return t, err
}

// MarkOf returns the mark of the index at a path, without changing it.
func MarkOf(path string) (journal.Position, error) {
	r, mark, err := openStored(path)
	if err == nil {
		err = r.Close()
	}
	return mark, err
}
