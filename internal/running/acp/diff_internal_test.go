package acp

import "testing"

func TestADiffHasTheChangedLinesAndThoseAround(t *testing.T) {
	old := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		d    diff
		want string
	}{
		"a new file": {diff{Path: "a", New: "x\n"}, "--- /dev/null\n+++ a\n@@ -0,0 +1,1 @@\n+x\n"},
		"no line end": {
			diff{Path: "a", Old: old("x"), New: "x\n"},
			"--- a\n+++ a\n@@ -1,1 +1,1 @@\n-x\n\\ No newline at end of file\n+x\n",
		},
		"nothing":     {diff{Path: "a", Old: old("x\n"), New: "x\n"}, ""},
		"all removed": {diff{Path: "a", Old: old("x\n"), New: ""}, "--- a\n+++ a\n@@ -1,1 +0,0 @@\n-x\n"},
		"a line within": {
			diff{Path: "a\n+b", Old: old("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), New: "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"},
			"--- a\\n+b\n+++ a\\n+b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n",
		},
		"a line that repeats": {
			diff{Path: "a", Old: old("x\nx\n"), New: "x\nx\nx\n"},
			"--- a\n+++ a\n@@ -1,2 +1,3 @@\n x\n x\n+x\n",
		},
	} {
		if got := c.d.unified(); got != c.want {
			t.Errorf("%s: the diff is\n%s\nwant\n%s", name, got, c.want)
		}
	}
}
