package release_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// TestThePageOfAPortNamesWhatTheCodeUses looks up each name of the first column of the table of
// docs/porting.md in the code of the packages of the third.
func TestThePageOfAPortNamesWhatTheCodeUses(t *testing.T) {
	_, table, found := strings.Cut(read(t, "../../../docs/porting.md"), "|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if !found {
		t.Fatal("docs/porting.md has no table")
	}
	for row := range strings.SplitSeq(table, "\n") {
		columns := strings.Split(row, "|")
		if len(columns) != 5 {
			t.Fatalf("the row %q has %d columns", row, len(columns)-2)
		}
		code := ""
		for _, dir := range quoted.FindAllStringSubmatch(columns[3], -1) {
			text := codeOf(t, dir[1])
			if text == "" {
				t.Errorf("docs/porting.md names the package %s, which has no code", dir[1])
			}
			code += text
		}
		for _, name := range quoted.FindAllStringSubmatch(columns[1], -1) {
			if !strings.Contains(strings.ToLower(code), strings.ToLower(name[1])) {
				t.Errorf("docs/porting.md says that %s use %s, and they don't", strings.TrimSpace(columns[3]), name[1])
			}
		}
	}
}

// codeOf is the code of a package, without its tests.
func codeOf(t *testing.T, dir string) (text string) {
	t.Helper()
	paths, err := filepath.Glob("../../../" + dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			text += read(t, path)
		}
	}
	return text
}
