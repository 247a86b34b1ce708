// Package service makes the daemon a service of the user's own systemd, which
// starts it at login and again when it fails. It writes one file, and takes
// back only what it did.
package service

import (
	"bufio"
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// Name is the name of the unit.
const Name = "mailboxd.service"

//go:embed unit.service
var unitTemplate string

// A Unit is what the service's file says. Its zero value is of no use.
type Unit struct {
	Program  string   // the absolute path of the daemon
	Args     []string // what it is started with
	Env      []string // KEY=VALUE, with PATH among them: a service has another environment than a shell
	EnvFile  string   // an optional file with more of them, such as keys that agents need
	Lingered bool     // we let the user's services go on after logout, so uninstalling takes that back
}

// Text returns the text of the unit's file. A control character in what it is
// made of is an error, and so is a quote or a backslash in the program's path:
// systemd would not take them.
func (u Unit) Text() (string, error) {
	for _, s := range append(append([]string{u.Program, u.EnvFile}, u.Args...), u.Env...) {
		if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return "", fmt.Errorf("write unit: %q holds a control character", s)
		}
	}
	if strings.ContainsAny(u.Program, "\"'\\") {
		return "", fmt.Errorf("write unit: systemd starts no program with a quote or backslash in its path, as %s has", u.Program)
	}
	command := []string{quote(u.Program, false)} // where no variable is looked for
	for _, arg := range u.Args {
		command = append(command, quote(arg, true))
	}
	var env strings.Builder
	for _, e := range u.Env {
		env.WriteString("Environment=" + quote(e, false) + "\n")
	}
	linger := ""
	if u.Lingered {
		linger = lingerMark + "\n"
	}
	return strings.NewReplacer(
		"@LINGER@\n", linger,
		"@COMMAND@", strings.Join(command, " "),
		"@ENVIRONMENT@\n", env.String(),
		"@ENVFILE@", escape(u.EnvFile),
	).Replace(unitTemplate), nil
}

// The lines by which we know a file of ours again, and that we enabled
// lingering.
const (
	mark       = "# Written by mailboxd service install."
	lingerMark = "# It also let your services go on after logout; uninstalling takes that back."
)

// quote writes a word so that systemd reads back just it. In a command a dollar
// sign would begin a variable.
func quote(word string, command bool) string {
	word = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(escape(word))
	if command {
		word = strings.ReplaceAll(word, "$", "$$")
	}
	return `"` + word + `"`
}

// escape takes the meaning from percent signs, which begin systemd's specifiers.
func escape(text string) string { return strings.ReplaceAll(text, "%", "%%") }

// PathOf returns the PATH that a unit's file gives its service, or "" when it
// gives none.
func PathOf(text string) string {
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), `Environment="PATH=`); ok {
			value = strings.TrimSuffix(value, `"`)
			return strings.NewReplacer(`\\`, `\`, `\"`, `"`, "%%", "%").Replace(value)
		}
	}
	return ""
}

// ours reports whether a unit's file is one that we wrote, and whether we
// enabled lingering with it.
func ours(text string) (written, lingered bool) {
	lines := strings.Split(text, "\n")
	return slices.Contains(lines, mark), slices.Contains(lines, lingerMark)
}
