package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"mailboxd/internal/decisions/task"
)

// DecideCall decides about a call of a tool under the terms of its run, and says why for the agent
// and for people. The tools that the run may use come first, then the first rule that matches. A
// call that has something unknown matches fewer rules that allow, never more.
func DecideCall(c task.Call, terms task.Terms) (answer task.CallAnswer, why string) {
	if c.MCP != "" {
		return decideMCP(c, terms)
	}
	if terms.Calls == nil {
		return task.RejectCall, "this agent has no acp rules"
	}
	if c.Kind == task.CallSwitchMode {
		return task.RejectCall, "the mode in which the agent asks stays"
	}
	if tool := c.Kind.Tool(); terms.Tools != nil && (tool == "" || !slices.Contains(terms.Tools, tool)) {
		return task.RejectCall, fmt.Sprintf("the task may use the tools %q only", terms.Tools)
	}
	return decideByRules(c, *terms.Calls)
}

// decideByRules returns what the first rule says that matches a call.
func decideByRules(c task.Call, rules task.CallRules) (answer task.CallAnswer, why string) {
	for i, rule := range rules.Rules {
		if matchesCall(rule, c) {
			return rule.Do, fmt.Sprintf("acp.rules[%d] says %s", i, rule.Do)
		}
	}
	if rules.Otherwise == task.AskPerson {
		return task.AskPerson, "no rule decides"
	}
	return task.RejectCall, "no rule allows it"
}

// matchesCall reports whether a rule decides a call. A rule that allows matches only calls whose
// paths all lie in the directory of the run and match, and needs to know those of an edit. Any
// other rule matches if one path does.
func matchesCall(rule task.CallRule, c task.Call) bool {
	if rule.MCP != "" || c.MCP != "" {
		return rule.MCP != "" && c.MCP != "" && matchesMCP(rule, c.MCP)
	}
	if rule.Kind != c.Kind || rule.Command != "" && !MatchCommand(rule.Command, c.Command) {
		return false
	}
	fits := func(name string) bool {
		return slices.ContainsFunc(rule.Paths, func(pattern string) bool { return matchPath(pattern, name) })
	}
	misfits := func(name string) bool { return !fits(name) }
	switch {
	case rule.Do != task.AllowCall:
		return len(rule.Paths) == 0 || slices.ContainsFunc(c.Paths, fits) || slices.ContainsFunc(c.Outside, fits)
	case len(c.Outside) > 0:
		return false
	case len(rule.Paths) > 0:
		return len(c.Paths) > 0 && !slices.ContainsFunc(c.Paths, misfits)
	case c.Kind.Tool() == "edit":
		return len(c.Paths) > 0
	}
	return true
}

// MatchCommand reports whether a command matches a pattern, word by word: * in the pattern is
// exactly one word of plain characters that is no option and no path out of the directory. A
// command that a shell could read as more than words matches only itself.
func MatchCommand(pattern, command string) bool {
	wanted, words := splitWords(pattern), splitWords(command)
	if strings.ContainsFunc(command, endsCommand) {
		return command == pattern && !slices.Contains(wanted, "*")
	}
	if len(wanted) != len(words) {
		return false
	}
	for i, want := range wanted {
		if want == "*" && !isPlain(words[i]) || want != "*" && want != words[i] {
			return false
		}
	}
	return len(words) > 0
}

// endsCommand reports whether a shell may end a command, or begin another, at a character.
func endsCommand(r rune) bool {
	return strings.ContainsRune(";|&<>$()`", r) || r != '\t' && unicode.IsControl(r)
}

// splitWords splits at what a shell takes for blanks.
func splitWords(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })
}

// isPlain reports whether a word means itself to a shell, and names no option and nothing outside
// the directory: neither itself nor a part of it, such as the file of "x=file" or "@file".
func isPlain(word string) bool {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_./:@%+=,-", r)
	}
	outside := func(part string) bool {
		return strings.HasPrefix(part, "/") || slices.Contains(strings.Split(part, "/"), "..")
	}
	parts := strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(":=,@%+", r) })
	return !strings.ContainsFunc(word, special) && !strings.HasPrefix(word, "-") && !slices.ContainsFunc(parts, outside)
}

// matchPath reports whether a slash-separated path matches a pattern: path.Match for each element,
// ** for any number of elements. An element that begins with a dot matches only one that does:
// such files change what programs do.
func matchPath(pattern, name string) bool {
	patterns, names := strings.Split(pattern, "/"), strings.Split(name, "/")
	at, again, from := 0, 0, 0 // the next pattern, the one after the last ** (0: none yet), and what it was tried at last
	for i := 0; i < len(names); {
		switch {
		case at < len(patterns) && patterns[at] == "**":
			at, from = at+1, i
			again = at
		case at < len(patterns) && matchElement(patterns[at], names[i]):
			at, i = at+1, i+1
		case again > 0 && !strings.HasPrefix(names[from], "."):
			from++
			at, i = again, from
		default:
			return false
		}
	}
	for at < len(patterns) && patterns[at] == "**" {
		at++
	}
	return at == len(patterns)
}

func matchElement(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil && strings.HasPrefix(name, ".") == strings.HasPrefix(pattern, ".")
}
