package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestImportsGetTheNewPathAndKeepTheirOrderAndComments(t *testing.T) {
	const before = `// Package p is mailboxd/envelope's friend.
package p

import (
	"fmt"

	"mailboxd"
	wire "mailboxd/envelope" // the types
	_ "mailboxd/internal/zebra"
	"mailboxd2/envelope"
	"mailboxdx"
)

var text = fmt.Sprint("mailboxd/envelope", wire.Text)
`
	want := strings.NewReplacer(
		`"mailboxd"`, `"example.com/x/mailboxd"`, `wire "mailboxd/`, `wire "example.com/x/mailboxd/`, `_ "mailboxd/`, `_ "example.com/x/mailboxd/`,
	).Replace(before)
	got, err := rewrite([]byte(before), "mailboxd", "example.com/x/mailboxd")
	if err != nil || string(got) != want {
		t.Errorf("rewrite() = %v:\n%s\nwant:\n%s", err, got, want)
	}
	back, err := rewrite(got, "example.com/x/mailboxd", "mailboxd")
	if err != nil || string(back) != before {
		t.Errorf("rewrite() back = %v:\n%s\nwant:\n%s", err, back, before)
	}
}

func TestImportsOfOneBlockAreSortedAgain(t *testing.T) {
	got, err := rewrite([]byte("package p\n\nimport (\n\t\"a/b\"\n\t\"m/c\"\n\t\"n\"\n)\n"), "m", "z/m")
	if want := "package p\n\nimport (\n\t\"a/b\"\n\t\"n\"\n\t\"z/m/c\"\n)\n"; err != nil || string(got) != want {
		t.Errorf("rewrite() = %v:\n%s\nwant:\n%s", err, got, want)
	}
}

func TestAFileThatCannotBeReadLeavesAllAsTheyWere(t *testing.T) {
	dir := t.TempDir()
	const good = "package p\n\nimport \"m/c\"\n"
	for name, text := range map[string]string{"a.go": good, "b.go": "package p\n\nimport c\n", "testdata/c.go": "no Go", ".d/e.go": "no Go"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	n, err := rename(dir, "m", "z/m")
	if n != 0 || err == nil || !strings.Contains(err.Error(), "b.go") {
		t.Errorf("rename() = %d, %v; want an error that names b.go", n, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a.go")); err != nil || string(text) != good {
		t.Errorf("a.go is %q, %v; want it as it was", text, err)
	}
	if err := os.Remove(filepath.Join(dir, "b.go")); err != nil {
		t.Fatal(err)
	}
	if n, err := rename(dir, "m", "z/m"); n != 1 || err != nil {
		t.Errorf("rename() = %d, %v; want one file", n, err)
	}
}
