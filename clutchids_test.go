package mailboxd_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// clutchIDs are the numbers of the statements of Clutch, as ranges.
var clutchIDs = [][2]int{{1, 27}, {30, 36}, {40, 47}, {50, 54}, {60, 64}, {70, 92}}

// clutchRow is a row of the table in docs/clutch.md: the number, the statement, and the test or what is missing.
var clutchRow = regexp.MustCompile("(?m)^\\| (\\d\\d) \\| .+ \\| (?:`([^`]+)`|(?:not built|in part): .+) \\|$")

// The table of docs/clutch.md has each statement of the protocol, with a test that names it, or
// what is missing.
func TestEachStatementOfClutchHasATestOrSaysWhatIsMissing(t *testing.T) {
	page, err := os.ReadFile("docs/clutch.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{}
	var ids []string
	for _, row := range clutchRow.FindAllStringSubmatch(string(page), -1) {
		ids = append(ids, row[1])
		tests[row[1]] = row[2]
	}
	var want []string
	for _, of := range clutchIDs {
		for n := of[0]; n <= of[1]; n++ {
			want = append(want, fmt.Sprintf("%02d", n))
		}
	}
	if !slices.Equal(ids, want) {
		t.Errorf("docs/clutch.md has rows for %v; want %v, each with a test or what is missing", ids, want)
	}
	named := testsNaming(t, "CLUTCH-")
	for _, id := range want {
		path := tests[id]
		switch {
		case path != "" && !slices.ContainsFunc(named[id], func(p string) bool { return p == path || strings.HasSuffix(p, "/"+path) }):
			t.Errorf("docs/clutch.md says that %s names CLUTCH-%s; these do: %v", path, id, named[id])
		}
	}
}

// testsNaming returns the tests that name a number after a prefix, by the number.
func testsNaming(t *testing.T, prefix string) map[string][]string {
	t.Helper()
	number := regexp.MustCompile(prefix + `(\d\d)\b`)
	named := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".txtar") || path == "clutchids_test.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, id := range number.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains(named[id[1]], filepath.ToSlash(path)) {
				named[id[1]] = append(named[id[1]], filepath.ToSlash(path))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return named
}
