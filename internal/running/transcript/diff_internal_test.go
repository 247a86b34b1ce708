package transcript

import "testing"

func TestADiffHasTheChangedLinesAndThoseAround(t *testing.T) {
	old := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		d    Diff
		want string
	}{
		"a new file": {Diff{Path: "a", New: "x\n"}, "--- /dev/null\n+++ a\n@@ -0,0 +1,1 @@\n+x\n"},
		"no line end": {
			Diff{Path: "a", Old: old("x"), New: "x\n"},
			"--- a\n+++ a\n@@ -1,1 +1,1 @@\n-x\n\\ No newline at end of file\n+x\n",
		},
		"nothing":     {Diff{Path: "a", Old: old("x\n"), New: "x\n"}, ""},
		"all removed": {Diff{Path: "a", Old: old("x\n"), New: ""}, "--- a\n+++ a\n@@ -1,1 +0,0 @@\n-x\n"},
		"a line within": {
			Diff{Path: "a\n+b", Old: old("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), New: "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"},
			"--- a\\n+b\n+++ a\\n+b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n",
		},
		"a line that repeats": {
			Diff{Path: "a", Old: old("x\nx\n"), New: "x\nx\nx\n"},
			"--- a\n+++ a\n@@ -1,2 +1,3 @@\n x\n x\n+x\n",
		},
	} {
		if got := c.d.Unified(); got != c.want {
			t.Errorf("%s: the diff is\n%s\nwant\n%s", name, got, c.want)
		}
	}
}
