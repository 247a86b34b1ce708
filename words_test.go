package mailboxd_test

import (
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// oldWords are words of a private language, and phrases that users could not read. No
// tracked text has them.
var oldWords = []string{
	"bygones", "purse", "crew", "untold", "nudge", "nudged", "atonce", "porch", "bury", "buried", "endless", "kin", "stillness", "tamed",
	"utterance", "utterances", "letterbox", "waitingroom", "callnext", "metagain", "happenings", "mend", "mends", "mended", "doubt", "doubts", "whoever",
	"what nobody needs", "which are not over", "nobody else anything", "their readers'", "looked at again at",
	"below the 20 latest", "let go of a task", "judges nothing", "is another than", "no agent is paused", "as it must be",
	"nothing ends at logout", "keeps it right", "does not wait for a reply", "nobody approves their own", "caps nothing",
	"came once more", "stands in a mailbox", "what only reads", "the daemon's word", "goes on without us",
	"what the daemon would say", "start any more", "wherever your login shell", "says of lines", "has to be told",
	"gets to see", "at logout goes on", "says who held what", "who held which", "is nobody's", "lies there", "in vain", "innocent",
	"discreet", "strangers", "to whom", "of whom", "hear", "hearing", "hearall", "blameagent", "casefile",
	"lint says", "must be told", "said twice", "takes apart", "taken apart", "talk freely", "what there is to say", "speaks for no",
	"ourselves", "wish", "takeup", "begunanew", "scanturn", "strands", "beats", "tell of them", "hear reads", "a layer is",
	"is there after a power cut", "we do not speak", "nobody known here", "are their readers", "as ainl's contract has it",
}

// unclear are words that hide a subject: a text names the caller, the requester or the
// program instead. The code and pages at plainPaths have none of them.
var (
	unclear    = []string{"nobody", "somebody"}
	plainPaths = []string{"internal/stores/ledger/", "envelope/", "internal/running/agent/", "bench/", "docs/performance.md"}
)

// TestTextsOfTheStoresNameTheirSubjects searches code and pages without tests. A released
// schema never changes, and fixtures are what other programs wrote.
func TestTextsOfTheStoresNameTheirSubjects(t *testing.T) {
	searched := 0
	for _, path := range tracked(t) {
		if !slices.ContainsFunc(plainPaths, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) ||
			strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") || strings.HasSuffix(path, ".sql") {
			continue
		}
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		searched++
		for number, line := range strings.Split(strings.ToLower(string(text)), "\n") {
			for word := range strings.FieldsFuncSeq(line, isNoWord) {
				if slices.Contains(unclear, word) {
					t.Errorf("%s:%d has %q: %s", path, number+1, word, strings.TrimSpace(line))
				}
			}
		}
	}
	if searched < 100 {
		t.Errorf("searched %d files; want the packages of %v", searched, plainPaths)
	}
}

// oldWord has those that are one word, and oldPhrase finds the others.
var oldWord, oldPhrase = sortOldWords()

func sortOldWords() (map[string]bool, *regexp.Regexp) {
	words := map[string]bool{}
	var phrases []string
	for _, old := range oldWords {
		if strings.ContainsFunc(old, isNoWord) {
			phrases = append(phrases, old)
		} else {
			words[old] = true
		}
	}
	return words, regexp.MustCompile(`\b(` + strings.Join(phrases, "|") + `)\b`)
}

// isNoWord reports whether a character ends a word.
func isNoWord(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }

// TestNoTextHasTheOldWords searches code, help, logs, docs and scripts.
func TestNoTextHasTheOldWords(t *testing.T) {
	for _, path := range tracked(t) {
		if filepath.Ext(path) == ".png" || filepath.Base(path) == "package-lock.json" {
			continue // a picture has no words, and npm writes the hashes
		}
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.ToLower(string(text))
		number := 0
		for line := range strings.Lines(plain) {
			number++
			if found := oldIn(line); found != "" {
				t.Errorf("%s:%d has %q: %s", path, number, found, strings.TrimSpace(line))
			}
		}
	}
}

// oldIn returns the first of oldWords in a line in lower case, or "".
func oldIn(line string) string {
	for word := range strings.FieldsFuncSeq(line, isNoWord) {
		if oldWord[word] {
			return word
		}
	}
	for _, old := range oldWords {
		if !oldWord[old] && strings.Contains(line, old) {
			return oldPhrase.FindString(line)
		}
	}
	return ""
}

// oldNames are names of parts of the program that standard terms replaced. As words of a
// text they are ordinary.
var oldNames = []string{
	"house", "desk", "door", "told", "hear", "heard", "talk", "saying", "story", "layer", "lead", "calm", "fold", "unfolded",
	"complain", "reconsider", "revisit", "proceed", "shelf", "team", "early", "family", "shortage", "place",
}

// TestNothingHasAnOldName looks at every name that the code declares.
func TestNothingHasAnOldName(t *testing.T) {
	for _, file := range sources(t) {
		for node := range ast.Preorder(file) {
			for _, name := range declared(node) {
				if slices.Contains(oldNames, strings.ToLower(name.Name)) {
					t.Errorf("%s declares %s", fileSet.Position(name.Pos()), name.Name)
				}
			}
		}
	}
}

// declared returns the names that a node declares.
func declared(node ast.Node) (names []*ast.Ident) {
	add := func(all ...ast.Expr) {
		for _, e := range all {
			if name, ok := e.(*ast.Ident); ok {
				names = append(names, name)
			}
		}
	}
	switch n := node.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.Field:
		return n.Names
	case *ast.AssignStmt:
		add(n.Lhs...)
	case *ast.RangeStmt:
		add(n.Key, n.Value)
	}
	return names
}

// tracked lists the files of the repository with text of this project.
func tracked(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("the files of the project are known to git only: %v", err)
	}
	foreign := []string{
		"words_test.go", "go.sum", "LICENSE", "examples/upstream/",
		"internal/testtools/strict/testdata/", "internal/running/agent/testdata/",
	}
	return slices.DeleteFunc(strings.Split(strings.TrimRight(string(out), "\x00"), "\x00"), func(path string) bool {
		return slices.ContainsFunc(foreign, func(prefix string) bool { return strings.HasPrefix(filepath.ToSlash(path), prefix) })
	})
}
