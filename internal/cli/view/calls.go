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
		line := fmt.Sprintf("%s %s", r.Do, r.Kind)
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

// printCall prints a call of a tool. What its agent did not say is named as missing.
func printCall(w io.Writer, c task.Call) {
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "    %-8s %s\n", name, escaped(value))
		}
	}
	line("kind", cmp.Or(string(c.Kind), "(not said)"))
	line("title", c.Title)
	line("command", c.Command)
	line("paths", strings.Join(c.Paths, ", "))
	line("outside", strings.Join(c.Outside, ", "))
	if c.Command == "" && len(c.Paths)+len(c.Outside) == 0 {
		line("input", cmp.Or(string(c.Raw), "(not said)"))
	}
	switch {
	case c.Diff != "":
		fmt.Fprintf(w, "    diff\n%s\n", term.Indent(term.Escape(strings.TrimRight(c.Diff, "\n"))))
	case c.Kind.Tool() == "edit":
		line("diff", "(not said)")
	}
}
