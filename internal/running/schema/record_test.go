package schema_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mailboxd/internal/running/schema"
)

// follow opens the record, as a start of the daemon does, and returns the schemas that changed.
func follow(t *testing.T, path string, files map[string]string) (*schema.Set, []string) {
	t.Helper()
	r, err := schema.OpenRecord(path, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	s := load(t, files)
	changed := r.Changed(s)
	if err := r.Follow(s); err != nil {
		t.Fatal(err)
	}
	return s, changed
}

func TestASchemaKeepsItsMeaningFromItsFirstUse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "schemas.json")
	first, then := map[string]string{"a.json": `{"type": "object"}`, "b.json": `{}`}, map[string]string{"a.json": `{}`, "b.json": `{}`}
	if _, changed := follow(t, path, first); len(changed) > 0 {
		t.Fatalf("changed = %v; want none in a new record", changed)
	}
	s, changed := follow(t, path, then) // nothing was held against it, so it may change
	if len(changed) > 0 {
		t.Fatalf("changed = %v; want none, since no answer was held against a", changed)
	}
	if err := s.Check("schema://a", []byte(`1`)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and stays changed
		if _, changed = follow(t, path, first); !slices.Equal(changed, []string{"schema://a"}) {
			t.Fatalf("changed = %v; want a, which was used with other content", changed)
		}
	}
	if _, changed = follow(t, path, then); len(changed) > 0 {
		t.Errorf("changed = %v; want none, since a has its first content again", changed)
	}
	if _, changed = follow(t, path, nil); len(changed) > 0 {
		t.Errorf("changed = %v; want none of files that are gone", changed)
	}
}

func TestARecordThatCannotBeReadIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "schemas.json")
	if err := os.WriteFile(path, []byte(`{"schema://a"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.OpenRecord(path, nil); err == nil {
		t.Error("OpenRecord(half a file) = nil; want an error")
	}
}
