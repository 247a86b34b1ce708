package view_test

import (
	"strings"
	"testing"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

func TestACallIsShownWithWhatItsAgentDidNotSay(t *testing.T) {
	long := strings.Repeat("+ line\n", 302)
	for want, call := range map[string]task.Call{
		"kind     (not said)":   {Title: "something"},
		"input    (not said)":   {Kind: task.CallOther},
		`input    {"a":1}`:      {Kind: task.CallFetch, Raw: []byte(`{"a":1}`)},
		"diff     (not said)":   {Kind: task.CallEdit, Paths: []string{"a"}},
		"outside  /etc/passwd":  {Kind: task.CallRead, Outside: []string{"/etc/passwd"}},
		`command  rm \u001b[2J`: {Kind: task.CallExecute, Command: "rm \x1b[2J"},
		"+ line\n  ... (2 more lines: see mailboxd show --json)": {Kind: task.CallEdit, Diff: long},
	} {
		if got := view.Question(client.Approval{Stage: "tool", Call: &call}); !strings.Contains(got, want) {
			t.Errorf("%+v is shown as\n%.300s\nwant %q", call, got, want)
		}
	}
}

func TestTheRulesOfAnAgentAreSaidInWords(t *testing.T) {
	got := view.CallRuleWords(&task.CallRules{Rules: []task.CallRule{
		{Kind: task.CallEdit, Paths: []string{"src/**", "docs/*"}, Do: task.AllowCall},
		{Kind: task.CallExecute, Command: "go test *", Do: task.AskPerson},
	}})
	want := "allow edit in src/**, docs/*\nask execute \"go test *\"\nreject any other"
	if words := strings.Join(got, "\n"); words != want {
		t.Errorf("the rules are %q; want %q", words, want)
	}
}
