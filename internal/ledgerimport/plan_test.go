package ledgerimport

import (
	"path/filepath"
	"strings"
	"testing"
)

// Rows come in their order from the tables: a ledger may be larger than the memory.
func TestNoPartOfATaskIsSorted(t *testing.T) {
	db, err := openEmpty(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, p := range ofTask {
		rows, err := db.Query("EXPLAIN QUERY PLAN " + p.query)
		if err != nil {
			t.Fatalf("%s: %v", p.query, err)
		}
		for rows.Next() {
			var id, parent, unused int
			var step string
			if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(step, "TEMP B-TREE") {
				t.Errorf("%s: %s", p.query, step)
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
