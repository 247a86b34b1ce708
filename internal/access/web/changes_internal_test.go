package web

import (
	"html"
	"html/template"
	"regexp"
	"strings"
	"testing"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"mailboxd/internal/access/client"
	"mailboxd/internal/access/web/code"
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
	d.write()
	for _, f := range d.Diffs {
		shown.WriteString(f.Name + ": " + f.Words + textOf(f.HTML) + "\n")
	}
	const want = `main.txt: 
func main
1 - old
1 + new <b>
2   GIT binary patch
run.sh: new, can be executed
1 + exit 0  (no line end)
gone: deleted
1 - gone
from.txt -> to.txt: renamed
link: new, a symbolic link
1 + /etc/passwd  (no line end)
picture: new, not text
last: can't be executed any more
`
	if shown.String() != want {
		t.Errorf("shown is\n%s\nwant\n%s", shown.String(), want)
	}
}

var (
	beginOfLine = regexp.MustCompile(`<span class="(?:at|(?:minus|plus|same|same old)" data-n="(\d+))"[^>]*>`)
	anyTag      = regexp.MustCompile(`<[^>]*>`)
)

// textOf returns the lines of a difference as a person reads them, each with its number.
func textOf(text template.HTML) string {
	lines := beginOfLine.ReplaceAllString(string(text), "\n$1 ")
	return strings.ReplaceAll(html.UnescapeString(anyTag.ReplaceAllString(lines, "")), "\n func", "\nfunc")
}

func TestALongOrBrokenPatchIsShownInPartWithTheCommandForAllOfIt(t *testing.T) {
	long := &changesData{Worktree: &client.Worktree{}}
	lines := "+" + strings.Repeat("x", 5000) + "\n" + strings.Repeat("+"+strings.Repeat("x", 500)+"\n", mostDiffLines-1)
	long.addPatch("t1", []byte(somePatch+"diff --git a/z b/z\n--- a/z\n+++ b/z\n@@ -0,0 +1,3000 @@\n"+lines))
	long.write()
	last := long.Diffs[len(long.Diffs)-1]
	n, size := strings.Count(string(last.HTML), "data-n="), len(last.HTML)
	small := last.Long && n < mostDiffLines && size < 600*mostDiffLines
	if last.Name != "z" || last.Added != mostDiffLines || !small || !strings.Contains(long.Why, "mailboxd diff t1") {
		t.Errorf("a long file is %s, +%d with %d lines in %d bytes, and the page says %q", last.Name, last.Added, n, size, long.Why)
	}
	broken := &changesData{Worktree: &client.Worktree{}}
	broken.addPatch("t1", []byte(somePatch+"diff --git a/z b/z\n--- a/z\n+++ b/z\n@@ -0,0 +1,3000 @@\n+x\n"))
	if len(broken.Diffs) < 7 || !strings.Contains(broken.Why, "mailboxd diff t1") {
		t.Errorf("of a broken patch the page shows %d files and says %q", len(broken.Diffs), broken.Why)
	}
}

func TestWordsThatChangedInALineAreMarked(t *testing.T) {
	for _, test := range []struct{ was, is, want string }{
		{"the old word", "the new word", "the [old] word | the [new] word"},
		{"f(a, b)", "f(a, b, c)", "f(a, b) | f(a, b[, c])"},
		{"return nil", "x := 1", "return nil | x := 1"}, // another line
		{"", "x", " | x"},
		{"same", "same", "same | same"},
		{"日本の犬 x", "日本の犬 y", "日本の犬 [x] | 日本の犬 [y]"},
		{"the same one two three", "the same four five three", "the same [one two] three | the same [four five] three"},
	} {
		gone, came := code.ChangedWords(test.was, test.is)
		if got := marked(test.was, gone) + " | " + marked(test.is, came); got != test.want {
			t.Errorf("changedWords(%q, %q) marks %q; want %q", test.was, test.is, got, test.want)
		}
	}
}

// marked writes a line with brackets around pieces of it.
func marked(line string, pieces []code.Piece) (text string) {
	at := 0
	for _, p := range pieces {
		text, at = text+line[at:p.Begin]+"["+line[p.Begin:p.End]+"]", p.End
	}
	return text + line[at:]
}

// someCode is a difference of a program with all that is special in lines.
const someCode = `diff --git a/a.go b/a.go
--- a/a.go
+++ b/a.go
@@ -10,4 +10,4 @@ func a
 /* a note
 <that> goes on */ x := 1
-return f("old <b>", 2)
+return f("new <b>", 2)
 }
@@ -20,1 +19,0 @@
-x := "` + "\u202e" + `</pre><script>"
@@ -30,0 +30,1 @@
+y // <script>alert(1)</script>
`

func TestCodeIsColouredByItsLanguageAndEscaped(t *testing.T) {
	d := &changesData{Worktree: &client.Worktree{}}
	d.addPatch("t1", []byte(someCode))
	d.write()
	got := string(d.Diffs[0].HTML)
	for _, want := range []string{
		`<span class="at">9 lines unchanged  func a</span>`, `<span class="at">6 lines unchanged</span>`,
		`data-n="11">  <i class="c">&lt;that&gt; goes on */</i> x := <i class="m">1</i>`,
		`<span class="minus" data-n="12">- <i class="k">return</i> <i class="nf">f</i>(<i class="s">&#34;</i><del><i class="s">old</i></del>`,
		`<i class="c">// &lt;script&gt;alert(1)&lt;/script&gt;</i>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the difference has no %s:\n%s", want, got)
		}
	}
	if strings.Contains(got, "<script") || strings.Contains(got, "</pre") || strings.Contains(got, "<b>") {
		t.Errorf("what an agent wrote is markup:\n%s", got)
	}
	if strings.Contains(got, `class="same old"`) || strings.Count(string(htmlOf(d.files[0], true)), `class="same old"`) != 3 {
		t.Errorf("lines that stay are not there twice in two columns alone:\n%s", got)
	}
}

// FuzzNoLineOfADifferenceBecomesMarkup checks that what is written is the text of the line.
func FuzzNoLineOfADifferenceBecomesMarkup(f *testing.F) {
	for _, name := range []string{"a.go", "a.py", "a.html", "a.yaml", "a.sql", "a.txt", "Makefile"} {
		f.Add(name, "x := `<b>` /* \"", "<!-- <script> '\"\"\" */ -- # =")
	}
	f.Fuzz(func(t *testing.T, name, was, is string) {
		one := strings.NewReplacer("\n", "", "\x00", "")
		was, is = one.Replace(was), one.Replace(is)
		part := &gitdiff.TextFragment{OldPosition: 1, OldLines: 1, NewPosition: 1, NewLines: 1, Lines: []gitdiff.Line{
			{Op: gitdiff.OpDelete, Line: was + "\n"}, {Op: gitdiff.OpAdd, Line: is + "\n"},
		}}
		written := string(htmlOf(&gitdiff.File{NewName: name, TextFragments: []*gitdiff.TextFragment{part}}, false))
		got := html.UnescapeString(anyTag.ReplaceAllString(beginOfLine.ReplaceAllString(written, "\n"), ""))
		if want := "\n- " + cutLine(was) + "\n+ " + cutLine(is); got != html.UnescapeString(template.HTMLEscapeString(want)) {
			t.Errorf("%s, %q, %q is written as %q: %q; want %q", name, was, is, written, got, want)
		}
	})
}

func TestAPatchOfFiftyMegabytesNamesItsFiles(t *testing.T) {
	line := "+" + strings.Repeat("x", 98) + "\n"
	huge := "diff --git a/huge b/huge\n--- a/huge\n+++ b/huge\n@@ -0,0 +1,500000 @@\n" + strings.Repeat(line, 500000)
	d := &changesData{Worktree: &client.Worktree{Files: []client.ChangedFile{{Path: "a.go"}, {Path: "huge", Added: 500000}}}}
	d.addPatch("t1", []byte(someCode+huge))
	if len(d.Diffs) != 1 || len(d.Rest) != 1 || d.Rest[0].Path != "huge" || !strings.Contains(d.Why, "mailboxd diff t1") {
		t.Errorf("shown are %d files, %+v are named, and the page says %q; want a.go, and huge named", len(d.Diffs), d.Rest, d.Why)
	}
}

// BenchmarkDiffOfTwoThousandLines reads and writes a patch of Go code, each line of which changes in
// a word.
func BenchmarkDiffOfTwoThousandLines(b *testing.B) {
	was := "-\tif err := s.write(ctx, \"the old name\", 42); err != nil { // of the program\n"
	is := strings.ReplaceAll(strings.Replace(was, "-", "+", 1), "old", "new")
	for _, layout := range []string{"unified", "split"} {
		b.Run(layout, func(b *testing.B) {
			patch := []byte("diff --git a/z.go b/z.go\n--- a/z.go\n+++ b/z.go\n@@ -1,1000 +1,1000 @@\n" + strings.Repeat(was+is, 1000))
			for b.Loop() {
				d := &changesData{Worktree: &client.Worktree{}, Split: layout == "split"}
				if d.addPatch("t1", patch); d.Why != "" {
					b.Fatal(d.Why)
				}
				d.write()
			}
		})
	}
}
