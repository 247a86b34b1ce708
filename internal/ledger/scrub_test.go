package ledger_test

import (
	"bytes"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/ledger"
	"mailboxd/internal/task"
)

// Events of earlier builds have the command line of a refused caller, with the cookie of the page.
func TestAnUpgradeRemovesCommandLinesOfRefusedCallers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	log := func(kinds map[task.Kind]string) {
		t.Helper()
		l, _, err := ledger.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		err = l.Update(t.Context(), func(tx *ledger.Tx) error {
			for kind, data := range kinds {
				if err := tx.Log(task.Event{Time: time.Now(), Kind: kind, Data: jsontext.Value(data)}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	log(map[task.Kind]string{
		task.KindControlRefused:  `{"verb":"page","by":"process 7 (curl -b mbx-1=CANARY http://x)","why":"GET /: it is a run"}`,
		task.KindApprovalRefused: `{"by":"process 8 (agent (x) CANARY)","why":"it has the mark of a run"}`,
		task.KindAgentPaused:     `{"by":"ann (kept)","agent":"a"}`,
	})
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.ExecContext(t.Context(), "PRAGMA user_version = 12")
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	l, _, err := ledger.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	events, err := l.Events(t.Context(), "", 0, 10)
	all := ""
	for _, e := range events {
		all += string(e.Data) + "\n"
	}
	if err != nil || len(events) != 3 || strings.Contains(all, "CANARY") {
		t.Errorf("Events = %s, %v; want all three without the secret", all, err)
	}
	for _, want := range []string{`"by":"process 7"`, `"by":"process 8"`, `"verb":"page"`, `it is a run`, `ann (kept)`} {
		if !strings.Contains(all, want) {
			t.Errorf("events %s; want one with %s", all, want)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte("CANARY")) {
		t.Errorf("the file of the ledger still has the secret: %v", err)
	}
}
