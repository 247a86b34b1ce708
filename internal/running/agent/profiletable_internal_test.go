package agent

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/sandboxing/sandbox"
)

var updateTable = flag.Bool("update", false, "write the table of profiles in docs/agents.md")

// The marks around the table in docs/agents.md.
const (
	tableFile  = "../../../docs/agents.md"
	tableBegin = "<!-- made from the profiles: go test ./internal/running/agent -run TableOfTheProfiles -update -->\n"
	tableEnd   = "<!-- end -->\n"
)

func TestTheDocsHaveTheTableOfTheProfiles(t *testing.T) {
	text, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), tableBegin)
	have, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		t.Fatalf("%s has no table between %q and %q", tableFile, tableBegin, tableEnd)
	}
	want := profileTable()
	if *updateTable {
		if err := os.WriteFile(tableFile, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want {
		t.Errorf("%s has another table than the profiles; run: "+
			"go test ./internal/running/agent -run TableOfTheProfiles -update\nwant\n%s", tableFile, want)
	}
}

// profileTable is a table of the programs that can be told a permission.
func profileTable() string {
	var b strings.Builder
	b.WriteString("\n| profile | tested with | flags for `read_only` | for `edit` | for `edit` in a sandbox | to log in |\n|---|---|---|---|---|---|\n")
	for _, name := range limitedProfiles() {
		r := recipes[Profile(name)]
		held := sandbox.Settings{Profile: sandbox.Workspace}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", name, r.tested,
			flagsOf(Binding{Profile: Profile(name), Permission: ReadOnly}), flagsOf(Binding{Profile: Profile(name), Permission: Edit}),
			flagsOf(Binding{Profile: Profile(name), Permission: Edit, Sandbox: held}), r.login.remedy())
	}
	b.WriteString("\n")
	return b.String()
}

// flagsOf returns the flags that the permission of a binding adds to its command, and the
// variable with rules.
func flagsOf(b Binding) string {
	b = b.Filled()
	plain := Binding{Profile: b.Profile}.Filled()
	var flags []string
	for i, word := range b.Command {
		if !slices.Contains(plain.Command, word) {
			if previous := b.Command[i-1]; slices.Contains(plain.Command, previous) && !strings.HasPrefix(word, "--") {
				flags = append(flags, previous)
			}
			flags = append(flags, word)
		}
	}
	j := task.Job{Dir: "RUN"}
	if terms := b.terms(); terms != nil {
		flags = append(flags, terms(j)...)
	}
	text := "none"
	if len(flags) > 0 {
		text = "`" + strings.Join(flags, " ") + "`"
	}
	if rules := b.rulesFor(j); rules != nil && rules.env != "" {
		text += ", `" + rules.env + "`"
	}
	return text
}
