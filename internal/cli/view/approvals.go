package view

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
)

// printApproval prints the approval that a person is asked for, or else the last one, and its plan.
func (f *Details) printApproval(w io.Writer) {
	if len(f.Approvals) == 0 {
		return
	}
	a := f.PendingApproval()
	if a.Asked.IsZero() {
		a = f.Approvals[len(f.Approvals)-1]
	}
	printPlan(w, a)
	fmt.Fprintf(w, "    digest   %s\n", escaped(shortDigest(a.Digest)))
}

// printPlan prints an approval and its plan.
func printPlan(w io.Writer, a client.Approval) {
	fmt.Fprintf(w, "  approval   %s\n", escaped(describeApproval(a)))
	if a.Call != nil {
		printCall(w, *a.Call)
	}
	if a.Plan == nil {
		return
	}
	if words := ServiceWords(*a.Plan); words != "" {
		fmt.Fprintf(w, "    service  %s\n", escaped(words))
	}
	switch {
	case a.Plan.Inbox != "":
		fmt.Fprintf(w, "    inbox    %s\n", escaped(a.Plan.Inbox))
	case a.Plan.Remote:
		fmt.Fprintf(w, "    runs     %s\n", escaped(RunnerWords(*a.Plan)))
	case a.Plan.Service == nil || len(a.Plan.Command) > 0:
		fmt.Fprintf(w, "    command  %s\n", escaped(commandLine(a.Plan.Command)))
		for _, f := range Programs(*a.Plan) {
			fmt.Fprintf(w, "    %-8s %s\n", f.Name, escaped(f.Path+f.Words))
		}
		fmt.Fprintf(w, "    in       %s\n", escaped(PlaceOf(*a.Plan)))
		if words := SetupWords(*a.Plan); words != "" {
			fmt.Fprintf(w, "    setup    %s\n", escaped(words))
		}
		if words := SandboxWords(*a.Plan); words != "" {
			fmt.Fprintf(w, "    sandbox  %s\n", escaped(words))
		}
	}
	if a.Plan.Permission != "" {
		fmt.Fprintf(w, "    may      %s\n", escaped(a.Plan.Permission))
	}
	fmt.Fprintf(w, "    tools    %s\n", escaped(ToolWords(*a.Plan)))
	for _, words := range CallRuleWords(a.Plan.Calls) {
		fmt.Fprintf(w, "    calls    %s\n", escaped(words))
	}
	fmt.Fprintf(w, "    budget   %s\n", limitsOf(a.Plan.Budget))
	if names := VariableNames(*a.Plan); names != "" {
		fmt.Fprintf(w, "    env      %s\n", escaped(names))
	}
	if a.Plan.Manifest != "" {
		fmt.Fprintf(w, "    manifest %s\n", escaped(ContentWords(a.Plan.Manifest)))
	}
}

// RunnerWords says what runners run for a plan.
func RunnerWords(p client.Plan) string {
	words := "on runners, and none that has the agent is known"
	if len(p.Bindings) > 0 {
		short := make([]string, len(p.Bindings))
		for i, digest := range p.Bindings {
			short[i] = digest[:min(len(digest), task.ShortDigest)]
		}
		words = "on runners, as " + strings.Join(short, " or ") + " of mailboxd runners --json"
	}
	if p.Worktree {
		words += ", in a clone of " + p.Cwd
	}
	return words
}

// PlaceOf says where the run of a plan works.
func PlaceOf(p client.Plan) string {
	in := cmp.Or(p.Cwd, "the run directory")
	switch {
	case p.Continues != "" && p.Cwd == "":
		return "the run directory of " + string(p.Continues) + ", in its session"
	case p.Continues != "" && p.Worktree:
		return "the worktree of " + string(p.Continues) + ", in its session"
	case p.Continues != "":
		return in + ", in the session of " + string(p.Continues)
	case p.Worktree && p.RoundOf != "":
		return "the worktree of " + string(p.RoundOf) + ", as that left it"
	case p.Worktree && p.Base != "":
		return "a clone of " + p.Base + " of the repository of " + in + copiedWords(p)
	case p.Worktree:
		return "a clone of the repository of " + in + copiedWords(p)
	}
	return in
}

// ToolWords lists the tools of a plan, and the definitions of those that were used before.
func ToolWords(p client.Plan) string {
	if p.Tools == nil {
		return "not restricted"
	}
	words := cmp.Or(strings.Join(p.Tools, ", "), "none")
	var defined []string
	for _, name := range slices.Sorted(maps.Keys(p.Definitions)) {
		defined = append(defined, name+" "+ContentWords(p.Definitions[name]))
	}
	if len(defined) == 0 {
		return words
	}
	return words + "; defined: " + strings.Join(defined, ", ")
}

// copiedWords says what a clone gets of the working tree.
func copiedWords(p client.Plan) string {
	if len(p.Copy) == 0 {
		return ""
	}
	return ", with copies of " + strings.Join(p.Copy, ", ")
}

// SetupWords is the command that prepares the worktree of a plan, and the hosts that it reaches if
// they aren't those of the agent; "" for none.
func SetupWords(p client.Plan) string {
	switch hosts := p.Sandbox.SetupNetwork; {
	case len(p.Setup) == 0:
		return ""
	case hosts == nil:
		return commandLine(p.Setup)
	default:
		return commandLine(p.Setup) + ", with the network " + cmp.Or(strings.Join(hosts, ", "), "of no host")
	}
}

// A Program is the program of a plan, or a script that its command names.
type Program struct {
	Name  string // file or script
	Path  string // "not found" for a missing program
	Words string // what is known of its content; "" in the plans of earlier versions
}

// Programs returns the program of a plan and the scripts of its command, and what an approval
// covers of them.
func Programs(p client.Plan) []Program {
	of := func(name, path string) Program {
		content, covered := p.Files[path]
		version, shown := p.Versions[path]
		switch {
		case covered && content != "":
			return Program{name, path, ", " + ContentWords(content)}
		case shown && envelope.IsDigest(version):
			return Program{name, path, ", by its path, " + ContentWords(version) + " when asked"}
		case shown:
			return Program{name, path, ", by its path, version " + cmp.Or(version, "unknown")}
		}
		return Program{name, cmp.Or(path, "not found"), ""}
	}
	all := []Program{of("file", p.Executable)}
	scripts := map[string]string{}
	maps.Copy(scripts, p.Versions)
	maps.Copy(scripts, p.Files)
	delete(scripts, p.Executable)
	for _, path := range slices.Sorted(maps.Keys(scripts)) {
		all = append(all, of("script", path))
	}
	return all
}

// VariableNames lists the variables whose values a plan covers; "" for none.
func VariableNames(p client.Plan) string {
	return strings.Join(slices.Sorted(maps.Keys(p.Env)), ", ")
}

// ContentWords names the content of a file: by a digest, which is shortened, or by other words.
func ContentWords(content string) string {
	if envelope.IsDigest(content) {
		return "sha256 " + shortDigest(content)
	}
	return content
}

// escaped returns text on one line, exactly: line breaks, tabs and what controls a terminal are escapes. No
// part of a plan can look like another one.
func escaped(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(term.Escape(text))
}

// Question returns what a person is asked to agree to, in lines.
func Question(a client.Approval) string {
	var text strings.Builder
	printPlan(&text, a)
	fmt.Fprintf(&text, "    digest   %s", escaped(a.Digest))
	return text.String()
}

// ApprovalWords describes an approval or its decision.
func ApprovalWords(a client.Approval) string { return describeApproval(a) }

// CommandLine quotes the words of a command where needed.
func CommandLine(words []string) string { return commandLine(words) }

// LimitWords lists the limits of a budget.
func LimitWords(b envelope.Budget) string { return limitsOf(b) }

// describeApproval describes an approval or its decision.
func describeApproval(a client.Approval) string {
	matter := "to start it"
	switch a.Stage {
	case envelope.ApprovalPost:
		matter = "to show its answer"
	case envelope.ApprovalTool:
		matter = "to call a tool"
	}
	switch task.Decision(a.Decision) {
	case task.Undecided:
		until := ""
		if !a.Expires.IsZero() {
			until = ", until " + term.Stamp(a.Expires)
		}
		return fmt.Sprintf("%s: %s is asked%s", matter, cmp.Or(a.Approver, "any approver"), until)
	case task.Approved, task.Denied:
		said := ""
		if a.Note != "" {
			said = ": " + a.Note
		}
		return fmt.Sprintf("%s: %s by %s at %s%s%s", matter, a.Decision, a.Decider, term.Stamp(a.Decided), describeProof(a.Proof), said)
	}
	return fmt.Sprintf("%s: %s at %s, as %s", matter, a.Decision, term.Stamp(a.Decided), a.Note)
}

// describeProof describes the proof of a decision; "" without one.
func describeProof(p *client.Proof) string {
	switch {
	case p == nil:
		return ""
	case p.Key != "":
		return fmt.Sprintf(", proof %s, key %s", p.Kind, p.Key)
	}
	return fmt.Sprintf(", proof %s", p.Kind)
}

// commandLine quotes the words of a command where needed.
func commandLine(words []string) string {
	line := make([]string, len(words))
	for i, word := range words {
		line[i] = word
		if word == "" || strings.ContainsAny(word, " \t\n\"'\\") {
			line[i] = strconv.Quote(word)
		}
	}
	return strings.Join(line, " ")
}

func limitsOf(b envelope.Budget) string {
	var limits []string
	if b.Tokens != nil {
		limits = append(limits, fmt.Sprintf("%d tokens", *b.Tokens))
	}
	if b.USDCents != nil {
		limits = append(limits, fmt.Sprintf("%d US cents", *b.USDCents))
	}
	return cmp.Or(strings.Join(limits, ", "), "none")
}
