package ledgerimport

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
)

// What SQLite could not prepare, as while it cannot read its schema, it is asked to
// prepare again.
func TestAStatementThatWasNotPreparedIsPreparedLater(t *testing.T) {
	db, err := sql.Open("sqlite", writeURI(filepath.Join(t.TempDir(), "ledger.db")))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w := newTables(conn)
	if err := w.write(someLayer()); err == nil {
		t.Fatal("write(without tables) = nil; want an error")
	}
	if err := migrate(t.Context(), conn, migrations); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.write(someLayer()), w.close()); err != nil {
		t.Errorf("write(with tables) = %v; want nil", err)
	}
}
