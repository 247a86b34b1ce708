package task_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mailboxd/internal/task"
)

type constant struct{ name, value string }

// constants returns the constants of a type in vocabulary.go, in order.
func constants(t *testing.T, of string) (all []constant) {
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
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, constant{spec.Names[0].Name, text})
	}
	return all
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
		var want []string
		for _, c := range constants(t, of) {
			want = append(want, c.value)
		}
		if len(want) == 0 || !slices.Equal(listed, want) {
			t.Errorf("%ss listed are %q; want the constants in their order, %q", of, listed, want)
		}
	}
}

func TestConstantsOfKindsAreNamedAfterThem(t *testing.T) {
	for _, c := range constants(t, "Kind") {
		want := "Kind"
		for _, word := range strings.FieldsFunc(c.value, func(r rune) bool { return r == '.' || r == '_' }) {
			want += strings.ToUpper(word[:1]) + word[1:]
		}
		if c.name != want {
			t.Errorf("the constant of %s is %s; want %s", c.value, c.name, want)
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
