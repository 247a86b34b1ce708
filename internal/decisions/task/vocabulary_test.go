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

	"mailboxd/internal/decisions/task"
)

type constant struct{ name, value string }

// constants returns the constants of a type, in order.
func constants(t *testing.T, of string) (all []constant) {
	t.Helper()
	files := token.NewFileSet()
	vocabulary, err := parser.ParseFile(files, "vocabulary.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := parser.ParseFile(files, "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range slices.AppendSeq(slices.Collect(ast.Preorder(vocabulary)), ast.Preorder(reasons)) {
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
		f := r.Facts()
		check(string(r), f.Sentence)
		if f.Needs == "" || f.Awaits == "" {
			t.Errorf("nothing says what a task waits for that is held for %s", r)
		}
	}
}

func TestWhatIsNoneHasNoWords(t *testing.T) {
	if s := task.Kind("task.lost").Sentence() + task.Kind("").Short(); s != "" {
		t.Errorf("a kind that is none has the words %q", s)
	}
	f := task.Reason("mood").Facts()
	if s := f.Sentence + f.Clause() + f.WhyOf("t1") + f.Needs + f.Awaits; s != "" {
		t.Errorf("a reason that is none has the words %q", s)
	}
}

func TestClauseIsTheSentenceWithinAnother(t *testing.T) {
	if got, want := task.Paused.Facts().Clause(), "its agent is paused"; got != want {
		t.Errorf("Paused.Facts().Clause() = %q; want %q", got, want)
	}
}

func TestWhatAPersonOughtToDealWithComesFirst(t *testing.T) {
	held := []task.Reason{task.Capacity, task.Operator, "mood", task.Approval}
	var names []task.Reason
	for _, f := range task.FactsOf(held) {
		names = append(names, f.Reason)
	}
	if want := []task.Reason{task.Approval, task.Operator, task.Capacity}; !slices.Equal(names, want) {
		t.Errorf("FactsOf(%q) = %q; want %q", held, names, want)
	}
	personal := true
	for _, f := range task.FactsOf(task.Reasons()) {
		if f.NeedsPerson && !personal {
			t.Errorf("%s needs a person and comes after a reason that doesn't", f.Reason)
		}
		personal = f.NeedsPerson
		if f.NeedsPerson && f.Action == "" {
			t.Errorf("%s needs a person, and the table has nothing that one can do", f.Reason)
		}
	}
}
