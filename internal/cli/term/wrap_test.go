package term

import "testing"

func TestWrapBreaksParagraphsBetweenWords(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{
		{"one two three", 7, "one two\nthree"},
		{"one\ntwo three", 0, "one two three"},
		{"one two\n\nthree\nfour", 20, "one two\n\nthree four"},
		{"a list:\n  first  item\n  second\nafter it", 8, "a list:\n  first  item\n  second\nafter it"},
		{"unbreakable word", 4, "unbreakable\nword"},
		{"日本 語", 5, "日本\n語"},
		{"", 10, ""},
	} {
		if got := Wrap(c.text, c.columns); got != c.want {
			t.Errorf("Wrap(%q, %d) = %q; want %q", c.text, c.columns, got, c.want)
		}
	}
	if got, want := WrapIndented("fix: run a command", 10, 5), "fix:\n     run a\n     command"; got != want {
		t.Errorf("WrapIndented() = %q; want %q", got, want)
	}
}
