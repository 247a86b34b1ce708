package ledger

import (
	"context"
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// With a million tasks done, a start must not look at them: what it asks goes
// by the indexes that hold only the others.
func TestAStartGoesByThePartialIndexes(t *testing.T) {
	l, _, err := Open(filepath.Join(t.TempDir(), "ledger.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	open, _ := Filter{States: []State{Held, Queued, Running}}.query()
	held, _ := Filter{States: []State{Held}, Agent: "a"}.query()
	for query, index := range map[string]string{
		unfinishedQuery: "tasks_open",
		unsettledQuery:  "tasks_unsettled",
		unclaimedQuery:  "tasks_open",
		claimedQuery:    "tasks_open",
		open:            "tasks_open",
		held:            "tasks_open",
	} {
		plan, err := all(context.Background(), l.read, func(r row) (step string, err error) {
			var ignored any
			err = r.Scan(&ignored, &ignored, &ignored, &step)
			return step, err
		}, "EXPLAIN QUERY PLAN "+query, slices.Repeat([]any{0}, strings.Count(query, "?"))...)
		if err != nil || !strings.Contains(strings.Join(plan, "; "), "INDEX "+index) {
			t.Errorf("plan of %s = %q, %v; want it by %s", query, plan, err, index)
		}
	}
}

func TestASchemaComesForwardAllTheWayOrNotAtAll(t *testing.T) {
	ctx := context.Background()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	steps := []string{"CREATE TABLE a (x);", "ALTER TABLE a ADD y;\nINSERT INTO a VALUES (1, 2);", "CREATE TABLE a (again);"}
	for _, c := range []struct {
		steps []string
		fails bool
		want  int
	}{
		{steps[:1], false, 1},
		{steps, true, 1}, // the third is wrong, so the second is not kept
		{steps[:2], false, 2},
		{steps[:2], false, 2},
	} {
		err := migrate(ctx, conn, c.steps)
		got, read := schemaVersion(ctx, conn)
		if (err != nil) != c.fails || read != nil || got != c.want {
			t.Errorf("migrate(%d steps) = %v, version %d, %v; want version %d", len(c.steps), err, got, read, c.want)
		}
	}
	var rows int
	if err := conn.QueryRowContext(ctx, "SELECT count(y) FROM a").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows, %v; want 1", rows, err)
	}
}
