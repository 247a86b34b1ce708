package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
)

// PrintReload prints what a reload changed, or on mistakes why it changed nothing.
func PrintReload(w, mistakes io.Writer, d client.ConfigDiff) error {
	if printMistakes(mistakes, d) {
		_, err := fmt.Fprintln(mistakes, "the configuration in force is unchanged; see: mailboxd config check")
		return err
	}
	lines := ConfigChanges(d.Changes)
	if len(lines) == 0 {
		lines = []string{"nothing changed"}
	}
	_, err := fmt.Fprintln(w, term.Escape(strings.Join(lines, "\n")))
	return err
}

// PrintConfigDiff prints how the configuration of the daemon differs from its file.
func PrintConfigDiff(w, mistakes io.Writer, d client.ConfigDiff) error {
	fmt.Fprintf(w, "# daemon: read at %s; file: %s\n", term.Stamp(d.ReadAt), term.OneLine(cmp.Or(d.File, "none")))
	if printMistakes(mistakes, d) {
		return nil
	}
	for _, c := range d.Changes {
		fmt.Fprintln(w, term.OneLine(differenceOf(c)))
	}
	if len(d.Changes) == 0 {
		_, err := fmt.Fprintln(w, "no difference")
		return err
	}
	_, err := fmt.Fprintln(w, "# next: "+AfterConfigDiff(d.Changes))
	return err
}

func printMistakes(w io.Writer, d client.ConfigDiff) bool {
	for _, m := range d.Mistakes {
		fmt.Fprintln(w, "mailboxd:", term.OneLine(m))
	}
	return len(d.Mistakes) > 0
}

// AfterConfigDiff returns what puts changes in force.
func AfterConfigDiff(changes []client.ConfigChange) string {
	restart := slices.ContainsFunc(changes, func(c client.ConfigChange) bool { return c.Restart })
	reload := slices.ContainsFunc(changes, func(c client.ConfigChange) bool { return !c.Restart })
	switch {
	case restart && reload:
		return "mailboxd reload, or restart mailboxd serve for all of it"
	case restart:
		return "restart mailboxd serve"
	}
	return "mailboxd reload"
}

// ConfigChanges lists changes in a few lines: those of agents together, and those that need
// a restart last.
func ConfigChanges(changes []client.ConfigChange) (lines []string) {
	var agents, restart []string
	for i := 0; i < len(changes); i++ {
		c := changes[i]
		switch {
		case c.Agent != "" && c.Key == "":
			agents = append(agents, c.Change+" "+c.Agent)
		case c.Agent != "":
			keys := []string{c.Key}
			for ; i+1 < len(changes) && changes[i+1].Agent == c.Agent; i++ {
				keys = append(keys, changes[i+1].Key)
			}
			agents = append(agents, "changed "+c.Agent+" ("+strings.Join(keys, ", ")+")")
		case c.Restart:
			restart = append(restart, "needs a restart: "+valuesOf(c))
		default:
			lines = append(lines, valuesOf(c))
		}
	}
	if len(agents) > 0 {
		lines = append([]string{"agents: " + strings.Join(agents, "; ")}, lines...)
	}
	return append(lines, restart...)
}

// differenceOf describes one difference between daemon and file.
func differenceOf(c client.ConfigChange) string {
	switch {
	case c.Agent != "" && c.Key == "" && c.Change == client.Added:
		return "agents." + c.Agent + ": only in the file"
	case c.Agent != "" && c.Key == "":
		return "agents." + c.Agent + ": only in the daemon"
	case c.Agent != "":
		c.Key = "agents." + c.Agent + "." + c.Key
	}
	if c.Restart {
		return valuesOf(c) + " (needs a restart)"
	}
	return valuesOf(c)
}

// valuesOf shows the values of a key, the old one first.
func valuesOf(c client.ConfigChange) string {
	switch {
	case c.Was == nil && c.Is == nil:
		return c.Key + ": changed (not shown)"
	case c.Was == nil:
		return fmt.Sprintf("%s: added %s", c.Key, c.Is)
	case c.Is == nil:
		return fmt.Sprintf("%s: removed %s", c.Key, c.Was)
	}
	return fmt.Sprintf("%s: %s -> %s", c.Key, c.Was, c.Is)
}

// MarkPending marks the agents that differ between the daemon and its file, and adds those
// that only the daemon has.
func MarkPending(views []Agent, changes []client.ConfigChange) []Agent {
	for _, c := range changes {
		if c.Agent == "" {
			continue
		}
		is := func(v Agent) bool { return v.ID == c.Agent || v.Replica == c.Agent }
		if c.Change == client.Removed && c.Key == "" && !slices.ContainsFunc(views, is) {
			views = append(views, Agent{ID: c.Agent, Pending: client.Removed})
			continue
		}
		for i := range views {
			if is(views[i]) {
				views[i].Pending = client.Changed
				if c.Key == "" {
					views[i].Pending = c.Change
				}
			}
		}
	}
	return views
}

// pendingWords are what a table says about an agent that differs.
var pendingWords = map[string]string{
	client.Added:   "not loaded: mailboxd reload",
	client.Changed: "changed since it was loaded: mailboxd reload",
	client.Removed: "not in the file any more: mailboxd reload",
}
