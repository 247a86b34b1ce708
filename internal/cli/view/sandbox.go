package view

import (
	"strings"

	"mailboxd/internal/access/client"
	"mailboxd/internal/sandboxing/sandbox"
)

// SandboxWords says on one line what the sandbox of a plan's run lets it reach: its profile, the
// hosts of its network, the paths that it may write or read besides, and what happens where the
// machine can't provide it. It names all of them, since a person agrees to all of them. "" for a
// plan of an earlier version, which covers no sandbox, and for one without a command.
func SandboxWords(p client.Plan) string {
	if p.Format == 0 || p.Inbox != "" {
		return ""
	}
	s := p.Sandbox
	if !s.Active() {
		return "none: the run may do what the user of the daemon may"
	}
	words := []string{"bubblewrap, profile " + string(s.Profile), "network: none"}
	if len(s.Network) > 0 {
		words[1] = "network: " + strings.Join(s.Network, ", ")
	}
	for _, also := range []struct {
		verb  string
		paths []sandbox.Path
	}{{"writes", append(append([]sandbox.Path{}, s.Home...), s.Write...)}, {"reads", s.Read}} {
		if len(also.paths) > 0 {
			words = append(words, "also "+also.verb+": "+pathWords(also.paths))
		}
	}
	switch s.Missing {
	case sandbox.Weaker:
		words = append(words, "without bubblewrap: Landlock, which holds less")
	case sandbox.Open:
		words = append(words, "without bubblewrap: no sandbox")
	}
	return strings.Join(words, "; ")
}

// pathWords lists paths, and what a symbolic link among them means.
func pathWords(paths []sandbox.Path) string {
	var words []string
	for _, p := range paths {
		if p.Real != p.Name && p.Real != "" {
			words = append(words, p.Name+" ("+p.Real+")")
		} else {
			words = append(words, p.Name)
		}
	}
	return strings.Join(words, ", ")
}
