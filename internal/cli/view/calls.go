package view

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
)

// CallRuleWords says which calls of tools are allowed, one line a rule; none for nil.
func CallRuleWords(rules *task.CallRules) (lines []string) {
	if rules == nil {
		return nil
	}
	for _, r := range rules.Rules {
		line := fmt.Sprintf("%s %s", r.Do, cmp.Or(string(r.Kind), r.MCP))
		if r.Command != "" {
			line += fmt.Sprintf(" %q", r.Command)
		}
		if len(r.Paths) > 0 {
			line += " in " + strings.Join(r.Paths, ", ")
		}
		lines = append(lines, line)
	}
	return append(lines, string(cmp.Or(rules.Otherwise, task.RejectCall))+" any other")
}

// A CallFact is one thing that a person sees of a call.
type CallFact struct{ Name, Value string }

// CallFacts says what a call does. What its agent did not say is named as missing.
func CallFacts(c task.Call) (all []CallFact) {
	const missing = "(not said)"
	add := func(name, value string) {
		if value != "" {
			all = append(all, CallFact{name, value})
		}
	}
	add("Kind", cmp.Or(string(c.Kind), missing))
	add("Title", c.Title)
	add("Command", c.Command)
	add("Paths", strings.Join(c.Paths, ", "))
	add("Outside", strings.Join(c.Outside, ", "))
	if c.Command == "" && len(c.Paths)+len(c.Outside) == 0 {
		add("Input", cmp.Or(string(c.Raw), missing))
	}
	add("Changed", c.Changed)
	if c.Diff != "" || c.Kind.Tool() == "edit" {
		add("Diff", cmp.Or(c.Diff, missing))
	}
	return all
}

// printCall prints a call of a tool.
func printCall(w io.Writer, c task.Call) {
	for _, f := range CallFacts(c) {
		if strings.Contains(f.Value, "\n") && f.Name == "Diff" {
			fmt.Fprintf(w, "    diff\n%s\n", term.Indent(cutLines(term.Escape(strings.TrimRight(f.Value, "\n")))))
			continue
		}
		fmt.Fprintf(w, "    %-8s %s\n", strings.ToLower(f.Name), escaped(f.Value))
	}
}

// maxLines is how many lines of a difference are shown before a decision about a call.
const maxLines = 300

// cutLines leaves out the lines of a long text after the first ones, and says so.
func cutLines(text string) string {
	lines := strings.Split(text, "\n")
	if len(lines) <= maxLines {
		return text
	}
	return fmt.Sprintf("%s\n... (%d more lines: see mailboxd show --json)", strings.Join(lines[:maxLines], "\n"), len(lines)-maxLines)
}
