package web

import (
	"strings"
	"testing"

	"mailboxd/internal/client"
)

// A patch as git diff --binary makes it.
const somePatch = `diff --git a/main.txt b/main.txt
index 1..2 100644
--- a/main.txt
+++ b/main.txt
@@ -1,2 +1,2 @@ func main
-old
+new <b>
 GIT binary patch
diff --git a/run.sh b/run.sh
new file mode 100755
index 000..111
--- /dev/null
+++ b/run.sh
@@ -0,0 +1 @@
+exit 0
\ No newline at end of file
diff --git a/gone b/gone
deleted file mode 100644
index 111..000
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/from.txt b/to.txt
similarity index 100%
rename from from.txt
rename to to.txt
diff --git a/link b/link
new file mode 120000
index 000..111
--- /dev/null
+++ b/link
@@ -0,0 +1 @@
+/etc/passwd
\ No newline at end of file
diff --git a/picture b/picture
new file mode 100644
index 000..111
GIT binary patch
literal 999999999999
zcmV;hK~MfJ0U

literal 0
HcmV?d00001

diff --git a/last b/last
old mode 100755
new mode 100644
`

func TestAPatchIsShownByFilesWithWhatHappensToThem(t *testing.T) {
	d := &changesData{Worktree: &client.Worktree{}}
	d.addPatch("t1", []byte(somePatch))
	if d.Why != "" {
		t.Errorf("not all is shown: %s", d.Why)
	}
	var shown strings.Builder
	for _, f := range d.Diffs {
		shown.WriteString(f.Name + ": " + f.Words + "\n")
		for _, line := range f.Lines {
			shown.WriteString(line.Sign + line.Text + "\n")
		}
	}
	const want = `main.txt: 
@line 1  func main
-old
+new <b>
 GIT binary patch
run.sh: new, can be executed
@line 1
+exit 0  (no line end)
gone: deleted
@line 0
-gone
from.txt -> to.txt: renamed
link: new, a symbolic link
@line 1
+/etc/passwd  (no line end)
picture: new, not text
last: can't be executed any more
`
	if shown.String() != want {
		t.Errorf("shown is\n%s\nwant\n%s", shown.String(), want)
	}
}

func TestALongOrBrokenPatchIsShownInPartWithTheCommandForAllOfIt(t *testing.T) {
	long := &changesData{Worktree: &client.Worktree{}}
	lines := strings.Repeat("+"+strings.Repeat("x", 5000)+"\n", mostDiffLines)
	long.addPatch("t1", []byte(somePatch+"diff --git a/z b/z\n--- a/z\n+++ b/z\n@@ -0,0 +1,3000 @@\n"+lines))
	last := long.Diffs[len(long.Diffs)-1]
	if last.Name != "z" || last.Added != mostDiffLines || len(last.Lines) > mostDiffLines || len(last.Lines[1].Text) > mostDiffText+3 || !strings.Contains(long.Why, "mailboxd diff t1") {
		t.Errorf("a long file is %s, +%d with %d lines, and the page says %q", last.Name, last.Added, len(last.Lines), long.Why)
	}
	broken := &changesData{Worktree: &client.Worktree{}}
	broken.addPatch("t1", []byte(somePatch+"diff --git a/z b/z\n--- a/z\n+++ b/z\n@@ -0,0 +1,3000 @@\n+x\n"))
	if len(broken.Diffs) < 7 || !strings.Contains(broken.Why, "mailboxd diff t1") {
		t.Errorf("of a broken patch the page shows %d files and says %q", len(broken.Diffs), broken.Why)
	}
}

func BenchmarkDiffOfTwoThousandLines(b *testing.B) {
	lines := strings.Repeat("-old and rather long words of a program\n+new and rather long words of a program\n", 1000)
	patch := []byte("diff --git a/z b/z\n--- a/z\n+++ b/z\n@@ -1,1000 +1,1000 @@\n" + lines)
	for b.Loop() {
		d := &changesData{Worktree: &client.Worktree{}}
		d.addPatch("t1", patch)
		if d.Why != "" {
			b.Fatal(d.Why)
		}
	}
}
