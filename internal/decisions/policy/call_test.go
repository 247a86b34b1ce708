package policy_test

import (
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/decisions/policy"
	"mailboxd/internal/decisions/task"
)

func TestACommandMatchesAPatternOnlyWordByWord(t *testing.T) {
	for _, row := range []struct {
		pattern, command string
		want             bool
	}{
		{"go test ./...", "go test ./...", true},
		{"go test ./...", "go  test\t./...", true},
		{"go test ./...", "go test ./... ", true},
		{"go test *", "go test ./...", true},
		{"go test *", "go test internal/policy", true},
		{"go test *", "go test übung", true},
		{"make * V=1", "make all V=1", true},
		{"make *", "make CC=gcc", true},
		{"go test *", "go test ...", true},
		{"go test *", "go test ..a/b", true},
		{"go test x; rm -rf y", "go test x; rm -rf y", true},
		{"go test ./...", "go test ./... ./other", false},
		{"go test ./...", "go test", false},
		{"go test *", "go test", false},
		{"go test *", "go test ", false},
		{"go test *", "go test a b", false},
		{"go test *", "sudo go test a", false},
		{"go test *", "go test x; rm -rf y", false},
		{"go test * * * *", "go test x; rm -rf y", false},
		{"go test *", "go test $(id)", false},
		{"go test *", "go test $HOME", false},
		{"go test *", "go test `id`", false},
		{"go test * *", "go test -exec=x ./...", false},
		{"go test * * *", "go test -toolexec x ./...", false},
		{"go test *", "go test \"-exec=x\"", false},
		{"go test *", "go test '-exec=x'", false},
		{"go test *", "go test \\-exec=x", false},
		{"go test * *", "go test ''-exec=x a", false},
		{"go test *", "go test {-exec=x,./...}", false},
		{"go test *", "go test [-]exec=x", false},
		{"go test *", "go test *", false},
		{"go test * ; x", "go test * ; x", false},
		{"go test * *", "go test * a", false},
		{"go test *", "go test ?", false},
		{"go test *", "go test ~root", false},
		{"go test *", "go test ../x", false},
		{"go test *", "go test a/../../x", false},
		{"go test *", "go test a=../x", false},
		{"go test *", "go test /etc/passwd", false},
		{"go test *", "go test a:..", false},
		{"make *", "make DESTDIR=/etc", false},
		{"curl *", "curl @/etc/passwd", false},
		{"curl *", "curl a@../x", false},
		{"go test *", "go test x|sh", false},
		{"go test *", "go test x&sh", false},
		{"go test *", "go test x>y", false},
		{"go test *", "go test x<y", false},
		{"go test * sh", "go test x\nsh", false},
		{"go test *", "go test x\rsh", false},
		{"go test *", "go test x\x00sh", false},
		{"go test *", "go\u00a0test x", false},
		{"go test *", "go test x\u00a0y", false},
		{"go test *", "go test #", false},
		{"go test *", "go test !x", false},
		{"go", "", false},
		{"*", "", false},
		{"", "", false},
	} {
		if got := policy.MatchCommand(row.pattern, row.command); got != row.want {
			t.Errorf("MatchCommand(%q, %q) = %t; want %t", row.pattern, row.command, got, row.want)
		}
	}
}

func TestTheFirstRuleThatMatchesDecidesACall(t *testing.T) {
	rules := &task.CallRules{
		Rules: []task.CallRule{
			{Kind: task.CallEdit, Paths: []string{"src/secret/**"}, Do: task.RejectCall},
			{Kind: task.CallEdit, Paths: []string{"src/**", "docs/*.md", ".github/**"}, Do: task.AllowCall},
			{Kind: task.CallExecute, Command: "go test *", Do: task.AllowCall},
			{Kind: task.CallRead, Do: task.AllowCall},
			{Kind: task.CallDelete, Do: task.AllowCall},
		},
		Otherwise: task.AskPerson,
	}
	for _, row := range []struct {
		call task.Call
		want task.CallAnswer
	}{
		{task.Call{Kind: task.CallEdit, Paths: []string{"src/a.go"}}, task.AllowCall},
		{task.Call{Kind: task.CallEdit, Paths: []string{"src/a/b/c.go", "docs/x.md"}}, task.AllowCall},
		{task.Call{Kind: task.CallEdit, Paths: []string{".github/workflows/ci.yml"}}, task.AllowCall},
		{task.Call{Kind: task.CallEdit, Paths: []string{"src/a.go", "main.go"}}, task.AskPerson},
		{task.Call{Kind: task.CallEdit, Paths: []string{"src/a.go"}, Outside: []string{"/etc/passwd"}}, task.AskPerson},
		{task.Call{Kind: task.CallEdit, Paths: []string{"docs/a/x.md"}}, task.AskPerson},
		{task.Call{Kind: task.CallEdit, Paths: []string{"src"}}, task.AllowCall},
		{task.Call{Kind: task.CallEdit, Paths: []string{"src/.git/hooks/x"}}, task.AskPerson},
		{task.Call{Kind: task.CallEdit, Paths: []string{"src/a/.git"}}, task.AskPerson},
		{task.Call{Kind: task.CallEdit, Paths: []string{"src/secret/a", "src/b"}}, task.RejectCall},
		{task.Call{Kind: task.CallEdit}, task.AskPerson},
		{task.Call{Kind: task.CallDelete}, task.AskPerson},
		{task.Call{Kind: task.CallDelete, Paths: []string{"a"}}, task.AllowCall},
		{task.Call{Kind: task.CallExecute, Command: "go test x"}, task.AllowCall},
		{task.Call{Kind: task.CallExecute, Command: "go test x", Outside: []string{"/"}}, task.AskPerson},
		{task.Call{Kind: task.CallExecute}, task.AskPerson},
		{task.Call{Kind: task.CallRead}, task.AllowCall},
		{task.Call{Kind: task.CallRead, Outside: []string{"/etc/passwd"}}, task.AskPerson},
		{task.Call{Kind: task.CallFetch}, task.AskPerson},
		{task.Call{Kind: task.CallSwitchMode}, task.RejectCall},
		{task.Call{}, task.AskPerson},
	} {
		if got, why := policy.DecideCall(row.call, task.Terms{Calls: rules}); got != row.want {
			t.Errorf("DecideCall(%+v) = %s, %s; want %s", row.call, got, why, row.want)
		}
	}
}

func TestNoRuleAllowsACallOfAToolThatTheTaskMayNotUse(t *testing.T) {
	var rules task.CallRules
	for _, kind := range task.CallKinds() {
		rules.Rules = append(rules.Rules, task.CallRule{Kind: kind, Do: task.AllowCall})
	}
	for _, row := range []struct {
		tools   []string
		allowed string // kinds
	}{
		{nil, "read search edit delete move execute fetch think other"},
		{[]string{}, ""},
		{[]string{"read"}, "read search"},
		{[]string{"edit", "command"}, "edit delete move execute"},
		{[]string{"web"}, "fetch"},
	} {
		var allowed []string
		for _, kind := range task.CallKinds() {
			c := task.Call{Kind: kind, Paths: []string{"a"}}
			if got, _ := policy.DecideCall(c, task.Terms{Tools: row.tools, Calls: &rules}); got == task.AllowCall {
				allowed = append(allowed, string(kind))
			}
		}
		if got := strings.Join(allowed, " "); got != row.allowed {
			t.Errorf("with the tools %q, allowed are %q; want %q", row.tools, got, row.allowed)
		}
	}
	if got, _ := policy.DecideCall(task.Call{Kind: task.CallRead}, task.Terms{}); got != task.RejectCall {
		t.Errorf("without rules, the answer is %q; want reject", got)
	}
}

// Whatever a command is, the star of a pattern stands for one word without a meaning to a shell.
func FuzzMatchCommand(f *testing.F) {
	f.Add("x; rm -rf y")
	f.Add("-exec=x")
	f.Add("a\u00a0b")
	f.Fuzz(func(t *testing.T, word string) {
		if !policy.MatchCommand("go test *", "go test "+word) {
			return
		}
		plain := strings.Trim(word, " \t")
		if !filepath.IsLocal(plain) || strings.HasPrefix(plain, "-") || strings.ContainsAny(plain, " \t\n\r;|&<>$()`\\\"'*?[]{}~#!") {
			t.Errorf("* matches %q", word)
		}
	})
}
