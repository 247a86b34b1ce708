package order_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"mailboxd/internal/access/web/order"
)

func TestAFormBecomesTheCommandThatSends(t *testing.T) {
	for name, c := range map[string]struct {
		form  url.Values
		args  []string
		input string
		says  string
	}{
		"words": {url.Values{"agent": {"claude"}, "words": {"-x\r\n; rm"}}, []string{"ask", "--no-wait", "--", "claude", "-"}, "-x\r\n; rm", "words     -x"},
		"all": {
			url.Values{
				"agent": {"claude"}, "words": {"fix"}, "in": {"/home/ada"}, "worktree": {"1"},
				"tokens": {"10"}, "usd_cents": {"20"}, "priority": {"-9"}, "approval": {"post"},
			},
			[]string{
				"ask", "--no-wait", "--approval=post", "--tokens=10", "--usd-cents=20", "--priority=-9",
				"--in=/home/ada", "--worktree", "--", "claude", "-",
			},
			"fix",
			"    words     fix\n    in        /home/ada\n    worktree  yes\n    approval  post\n    tokens    10\n    usd_cents 20\n    priority  -9\n",
		},
		"anyone": {url.Values{"agent": {"*"}, "words": {"--fix"}}, []string{"send", "--agent=*", "--type=task", "--description=--fix"}, "", "--fix"},
	} {
		got, err := order.Ask(c.form, []string{"claude"})
		if err != nil || !slices.Equal(got.Args, c.args) || got.Input != c.input || !strings.Contains(got.Content, c.says) {
			t.Errorf("%s: %+v, %v; want %q, %q, and %q in it", name, got, err, c.args, c.input, c.says)
		}
	}
}

func TestAQuestionFollowsATask(t *testing.T) {
	got, err := order.FollowUp("t1", url.Values{"words": {" and then? "}})
	if want := []string{"ask", "--no-wait", "--continue=t1", "--", "-"}; err != nil || !slices.Equal(got.Args, want) || got.Input != "and then?" {
		t.Errorf("FollowUp = %+v, %v; want %q", got, err, want)
	}
	if _, err := order.FollowUp("t1", nil); err == nil {
		t.Error("FollowUp of nothing = nil; want an error")
	}
}

func TestAnEditKeepsTheIDAndEverythingElse(t *testing.T) {
	const request = `{"schema_version": "1.0", "task_id": "t1", "requester_id": "ada", "target_agent": "a", "target_role": "executor",
		"task_type": "work", "description": "x", "input": {"refs": [], "payload": {"n": 1e3}}, "metadata": {"own": [1, 2]}}`
	text, err := order.WithPriority([]byte(request), "4")
	if err != nil {
		t.Fatal(err)
	}
	got, err := order.Edit("t1", text)
	for _, want := range []string{`"mbx.priority":4`, `"own":[1,2]`, `"n":1e3`, `"task_id":"t1"`} {
		if err != nil || !strings.Contains(got.Input, want) || strings.Count(got.Input, "\n") != 1 {
			t.Errorf("the line is %q, %v; want one with %s", got.Input, err, want)
		}
	}
	for _, bad := range []string{"10", "x", ""} {
		if _, err := order.WithPriority([]byte(request), bad); err == nil {
			t.Errorf("WithPriority(%q) = nil; want an error", bad)
		}
	}
	if _, err := order.Edit("t2", text); err == nil {
		t.Error("Edit of another task = nil; want an error")
	}
}
