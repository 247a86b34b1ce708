package ledgerimport

import (
	"database/sql"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openEmpty makes the tables of the last version.
func openEmpty(path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", uri(path, "rwc"))
	if err != nil {
		return nil, err
	}
	tx, err := db.Begin()
	if err == nil {
		err = errors.Join(migrate(tx), tx.Commit())
	}
	return db, err
}

func TestALedgerThatIsNotThereIsNotMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := Check(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Check() = %v; want fs.ErrNotExist", err)
	}
	if l, err := Open(path); err == nil {
		t.Error("Open() = nil; want an error")
		l.Close()
	}
	if left, err := filepath.Glob(path + "*"); err != nil || len(left) > 0 {
		t.Errorf("there are %v, %v; want nothing", left, err)
	}
}
