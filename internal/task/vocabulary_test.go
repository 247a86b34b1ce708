package task_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"mailboxd/internal/task"
)

// constants returns the values of the constants of a type in vocabulary.go, in
// order.
func constants(t *testing.T, of string) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "vocabulary.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for node := range ast.Preorder(file) {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			continue
		}
		if is, ok := spec.Type.(*ast.Ident); !ok || is.Name != of {
			continue
		}
		for _, v := range spec.Values {
			text, err := strconv.Unquote(v.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, text)
		}
	}
	return values
}

func texts[S ~string](list []S) (all []string) {
	for _, s := range list {
		all = append(all, string(s))
	}
	return all
}

func TestEveryConstantIsListedOnce(t *testing.T) {
	for of, listed := range map[string][]string{
		"State": texts(task.States()), "Reason": texts(task.Reasons()), "Kind": texts(task.EventKinds()),
	} {
		if want := constants(t, of); len(want) == 0 || !slices.Equal(listed, want) {
			t.Errorf("%ss listed are %q; want the constants in their order, %q", of, listed, want)
		}
	}
}

// sentence is one sentence in plain words: a capital letter, one full stop.
var sentence = regexp.MustCompile(`^[A-Z][A-Za-z',; -]+\.$`)

func TestEveryKindAndReasonHasOneSentence(t *testing.T) {
	said := map[string]string{}
	check := func(name, s string) {
		t.Helper()
		if !sentence.MatchString(s) {
			t.Errorf("%s has the sentence %q; want one that begins with a capital letter and ends in its only full stop", name, s)
		}
		if other := said[s]; other != "" {
			t.Errorf("%s and %s have the same sentence %q", name, other, s)
		}
		said[s] = name
	}
	for _, k := range task.EventKinds() {
		check(string(k), k.Sentence())
	}
	for _, r := range task.Reasons() {
		check(string(r), r.Sentence())
		if r.Needs() == "" || r.Awaits() == "" {
			t.Errorf("nothing says what a task waits for that is held for %s", r)
		}
	}
}

func TestWhatIsNoneHasNoWords(t *testing.T) {
	if s := task.Kind("task.lost").Sentence() + task.Kind("").Short(); s != "" {
		t.Errorf("a kind that is none has the words %q", s)
	}
	r := task.Reason("mood")
	if s := r.Sentence() + r.Clause() + r.Remedy() + r.Needs() + r.Awaits(); s != "" {
		t.Errorf("a reason that is none has the words %q", s)
	}
}

func TestClauseIsTheSentenceWithinAnother(t *testing.T) {
	if got, want := task.Paused.Clause(), "its agent is paused"; got != want {
		t.Errorf("Paused.Clause() = %q; want %q", got, want)
	}
}
