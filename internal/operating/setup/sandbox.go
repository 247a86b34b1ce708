package setup

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/sandboxing/sandbox"
	"mailboxd/mailbox"
)

// proposeSandboxes puts the found coding agents in a sandbox where this machine can make one
// and the configuration may have it. It asks a person first, if there is one.
func proposeSandboxes(ctx context.Context, f InitOptions, found []foundCLI) error {
	state, err := mailbox.DefaultStateDir(f.Root)
	if err != nil {
		return err
	}
	var able []int
	var names []string
	for i, c := range found {
		if c.needs != "" || len(agent.SandboxNeedsOf(agent.Profile(c.profile)).Hosts) == 0 {
			continue // nobody knows what it needs
		}
		if found[i].network, err = c.providerHosts(); err != nil {
			found[i].noSandbox = err.Error()
			continue
		}
		if err := c.trySandbox(ctx, filepath.Dir(f.File), agent.OwnDirs{Root: f.Root, State: state}); err != nil {
			found[i].noSandbox = term.OneLine(err.Error())
			continue
		}
		able, names = append(able, i), append(names, c.name)
	}
	if len(able) == 0 {
		return nil
	}
	if f.Ask != nil {
		yes, err := askSandbox(f.Ask, strings.Join(names, ", "))
		if err != nil || !yes {
			return err
		}
	}
	for _, i := range able {
		found[i].sandbox = found[i].sandboxProfile()
	}
	return nil
}

func askSandbox(ask func(question string) (string, error), names string) (bool, error) {
	answer, err := ask(fmt.Sprintf("Run %s in a sandbox with the project, the login and the hosts of the API, and no other file of yours? [Y/n] ", names))
	if err != nil {
		return false, err
	}
	answer = strings.ToLower(answer)
	return answer != "n" && answer != "no", nil
}

// trySandbox says why the program can't have the sandbox of its entry; nil if it can.
func (c foundCLI) trySandbox(ctx context.Context, configDir string, own agent.OwnDirs) error {
	needs := agent.SandboxNeedsOf(agent.Profile(c.profile))
	settings := sandbox.Settings{Profile: c.sandboxProfile(), Home: belowHome(needs.Write), Read: belowHome(needs.Read)}
	if c.project != "" {
		settings.Cwd = realPath(c.project)
		if sandbox.Within(settings.Cwd.Real, realPath(configDir).Real) {
			return fmt.Errorf("%s: has the configuration file, which the agent could change", c.project)
		}
	}
	b := agent.Binding{ID: c.name, Profile: agent.Profile(c.profile), Command: []string{c.path}, Cwd: c.project, Sandbox: settings}
	_, err := agent.TrySandbox(ctx, b, own)
	return err
}

// providerHosts returns the hosts at which the environment has the program's provider, as entries of
// a network list; nil for the usual ones. The gate of a sandbox passes on https alone.
func (c foundCLI) providerHosts() (hosts []string, err error) {
	for _, name := range c.env {
		if !strings.HasSuffix(name, "_BASE_URL") {
			continue
		}
		address, err := url.Parse(os.Getenv(name))
		if err != nil || address.Scheme != "https" || sandbox.CheckHost(address.Host) != nil {
			return nil, fmt.Errorf("%s is no https address of a host, and a sandbox reaches no other", name)
		}
		hosts = append(hosts, address.Host)
	}
	if hosts == nil {
		return nil, nil
	}
	return slices.Concat(agent.SandboxNeedsOf(agent.Profile(c.profile)).Hosts, hosts), nil
}

func belowHome(names []string) (paths []sandbox.Path) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	for _, name := range names {
		paths = append(paths, realPath(filepath.Join(home, name)))
	}
	return paths
}

// realPath resolves the symbolic links of a path that exists.
func realPath(path string) sandbox.Path {
	p := sandbox.Path{Name: filepath.Clean(path), Real: filepath.Clean(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		p.Real = real
	}
	return p
}
