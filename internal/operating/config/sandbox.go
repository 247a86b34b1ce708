package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"mailboxd/internal/access/client"
	"mailboxd/internal/running/agent"
	"mailboxd/internal/sandboxing/sandbox"
	"mailboxd/mailbox"
)

// Sandbox is the section of an agent's sandbox.
type Sandbox struct {
	Profile string   `mapstructure:"profile"`
	Missing string   `mapstructure:"missing"`
	Home    []string `mapstructure:"home"`
	Read    []string `mapstructure:"read"`
	Write   []string `mapstructure:"write"`
	Network []string `mapstructure:"network"`
	Memory  string   `mapstructure:"memory"`
	Pids    int64    `mapstructure:"pids"`
	Tasks   bool     `mapstructure:"tasks"`
}

// sandboxDefaults has the defaults of a sandbox.
func sandboxDefaults() Sandbox {
	return Sandbox{Profile: string(sandbox.Workspace), Missing: string(sandbox.Refuse)}
}

// fillSandbox is a decoding hook like fillAgent for a sandbox.
func fillSandbox(from, to reflect.Value) (any, error) {
	if to.Type() == reflect.TypeFor[Sandbox]() && from.Kind() == reflect.Map {
		to.Set(reflect.ValueOf(sandboxDefaults()))
	}
	return from.Interface(), nil
}

// sandboxOf returns the sandbox of an entry. Its paths get their meaning now: a symbolic link
// made later changes none.
func (c *Config) sandboxOf(e Entry) sandbox.Settings {
	s := e.Sandbox
	if s == nil || s.Profile == string(sandbox.None) {
		return sandbox.Settings{}
	}
	set := sandbox.Settings{
		Profile: sandbox.Profile(s.Profile), Missing: sandbox.Missing(s.Missing), Read: c.realPaths(s.Read), Write: c.realPaths(s.Write),
		Network: s.Network, Processes: s.Pids, Tasks: s.Tasks, Egress: c.Policy.Egress.settings(),
	}
	if s.Memory != "" {
		set.Memory, _ = sandbox.ParseSize(s.Memory) // checkSandbox reports an error
	}
	cwd := e.Exec.Cwd
	if len(e.Worker.Command) > 0 {
		cwd = e.Worker.Cwd
	}
	if cwd != "" {
		set.Cwd = realPath(c.Resolve(cwd))
	}
	needs := agent.SandboxNeedsOf(agent.Profile(e.Profile))
	if s.Network == nil && set.Profile != sandbox.Offline {
		set.Network = needs.Hosts
	}
	if w := e.Exec.Worktree; w != nil && w.Setup != nil {
		set.SetupNetwork = w.Setup.Network
	}
	if home, err := os.UserHomeDir(); err == nil {
		set.Home = pathsBelow(home, slices.Concat(s.Home, needs.Write))
		set.Read = append(set.Read, pathsBelow(home, needs.Read)...)
	}
	return set
}

func pathsBelow(home string, names []string) []sandbox.Path {
	var paths []sandbox.Path
	for _, name := range names {
		paths = append(paths, realPath(filepath.Join(home, name)))
	}
	return paths
}

func (c *Config) realPaths(names []string) []sandbox.Path {
	var paths []sandbox.Path
	for _, name := range names {
		paths = append(paths, realPath(c.Resolve(name)))
	}
	return paths
}

// realPath resolves the symbolic links of a path, as far as it exists.
func realPath(path string) sandbox.Path {
	p := sandbox.Path{Name: filepath.Clean(path), Real: filepath.Clean(path)}
	if real, err := filepath.EvalSymlinks(p.Name); err == nil {
		p.Real = real
	}
	return p
}

// checkSandbox refuses a sandbox that would not hold.
func (c *Config) checkSandbox(key string, e Entry) []error {
	if e.Sandbox == nil {
		return nil
	}
	s := *e.Sandbox
	key += ".sandbox"
	checks := []error{
		choice(key+".profile", s.Profile),
		choice(key+".missing", s.Missing),
	}
	checks = append(checks, s.checkLimits(key)...)
	for i, name := range s.Home {
		if !filepath.IsLocal(name) || filepath.Clean(name) == "." {
			checks = append(checks, wrong(fmt.Sprintf("%s.home[%d]", key, i), "%q: write a path below the home directory, such as .config/tool/login.json", name))
		}
	}
	for i, entry := range s.Network {
		if err := sandbox.CheckHost(entry); err != nil {
			checks = append(checks, wrong(fmt.Sprintf("%s.network[%d]", key, i), "%v", err))
		}
	}
	if len(s.Network) > 0 && s.Profile == string(sandbox.Offline) {
		checks = append(checks, wrong(key+".network", "the profile offline has no network; use workspace or read-only"))
	}
	if s.Tasks && len(e.Worker.Command) > 0 {
		checks = append(checks, wrong(key+".tasks", "is for an exec agent: a worker has no run of its own"))
	}
	if s.Missing == string(sandbox.Weaker) && s.Profile != string(sandbox.None) && len(c.sandboxOf(e).Network) > 0 {
		checks = append(checks, wrong(key+".missing", "the weaker sandbox has no network; write network: [], or missing: refuse"))
	}
	for name, list := range map[string][]string{"read": s.Read, "write": s.Write} {
		for i, path := range list {
			checks = append(checks, expanded(fmt.Sprintf("%s.%s[%d]", key, name, i), path))
		}
	}
	if errors.Join(checks...) != nil || s.Profile == string(sandbox.None) {
		return checks
	}
	return append(checks, c.checkSandboxPaths(key, e, c.sandboxOf(e))...)
}

// The least limits, with which bubblewrap and the first step inside work.
const (
	leastMemory = 32 << 20
	leastPids   = 32
)

// checkLimits checks the limits of memory and processes. Whether a cgroup is delegated shows only
// where the daemon runs: doctor says so.
func (s Sandbox) checkLimits(key string) (checks []error) {
	if s.Memory != "" {
		switch n, err := sandbox.ParseSize(s.Memory); {
		case err != nil:
			checks = append(checks, wrong(key+".memory", "%v", err))
		case n < leastMemory:
			checks = append(checks, wrong(key+".memory", "%s is too little to start a program; write at least %s", s.Memory, sandbox.FormatSize(leastMemory)))
		}
	}
	if s.Pids != 0 && s.Pids < leastPids {
		checks = append(checks, wrong(key+".pids", "%d is too little to start a program; write at least %d", s.Pids, leastPids))
	}
	if s.Profile == string(sandbox.None) && (s.Memory != "" || s.Pids != 0) {
		checks = append(checks, wrong(key+".profile", "memory and pids are limits of a sandbox; use another profile than none"))
	}
	return checks
}

func (c *Config) checkSandboxPaths(key string, e Entry, set sandbox.Settings) (checks []error) {
	canWrite := set.Profile != sandbox.ReadOnly
	check := func(key string, p sandbox.Path, writable bool) {
		if err := c.checkSandboxPath(p, writable); err != nil {
			checks = append(checks, wrong(key, "%s: %v", p.Name, err))
		}
	}
	for i, p := range set.Read {
		check(fmt.Sprintf("%s.read[%d]", key, i), p, false)
	}
	for i, p := range set.Home {
		check(fmt.Sprintf("%s.home[%d]", key, i), p, true)
	}
	for i, p := range set.Write {
		key := fmt.Sprintf("%s.write[%d]", key, i)
		check(key, p, canWrite)
		if err := checkSystem(p); err != nil {
			checks = append(checks, wrong(key, "%s: %v", p.Name, err))
		}
		if err := staysInside(p, append(set.Write, set.Cwd)); err != nil {
			checks = append(checks, wrong(key, "%s: %v", p.Name, err))
		}
	}
	if set.Cwd.Name != "" {
		section := "exec"
		if len(e.Worker.Command) > 0 {
			section = "worker"
		}
		key := strings.TrimSuffix(key, "sandbox") + section + ".cwd"
		check(key, set.Cwd, canWrite)
		checks = append(checks, checkWorkingDir(key, set.Cwd, canWrite))
	}
	for i, p := range c.realPaths(e.Exec.Workdirs) {
		key := fmt.Sprintf("%sexec.workdirs[%d]", strings.TrimSuffix(key, "sandbox"), i)
		check(key, p, canWrite)
		checks = append(checks, checkWorkingDir(key, p, canWrite))
	}
	return checks
}

// checkWorkingDir refuses a working directory of the system. A sandbox shows its working directory
// as it is outside, so one in /proc, /sys or /dev would replace what the sandbox has there. What is
// in /etc can be read, as everywhere in a sandbox.
func checkWorkingDir(key string, p sandbox.Path, writable bool) error {
	err := checkSystem(p)
	if err == nil || !writable && sandbox.Within("/etc", p.Name) && sandbox.Within("/etc", p.Real) {
		return nil
	}
	return wrong(key, "%s: %v", p.Name, err)
}

// checkWorktrees refuses a directory of the system for the clones that agents in a sandbox change.
func (c *Config) checkWorktrees() error {
	inSandbox := func(e Entry) bool {
		return e.Sandbox != nil && e.Sandbox.Profile != string(sandbox.None) && (e.Exec.Worktree != nil || len(e.Exec.Workdirs) > 0)
	}
	dir, err := c.WorktreesDir()
	if err != nil || !slices.ContainsFunc(c.written, inSandbox) {
		return nil // an error appears when it is opened
	}
	return checkWorkingDir("worktrees_dir", realPath(dir), true)
}

// checkSandboxPath says why a path is too wide for a sandbox, or shows what it must not.
func (c *Config) checkSandboxPath(p sandbox.Path, writable bool) error {
	if p.Real == "/" {
		return errors.New("is the whole file system; name the directories that the agent needs")
	}
	if home, err := os.UserHomeDir(); err == nil && sandbox.Within(p.Real, realPath(home).Real) {
		return errors.New("shows the whole home directory; name what the agent needs below it")
	}
	if root := realPath(c.Root).Real; sandbox.Overlap(p.Real, root) {
		return fmt.Errorf("is in or around the mailbox %s; an agent gets the files that its task names, and no others", root)
	}
	dir := c.StateDir
	if dir == "" {
		dir, _ = mailbox.DefaultStateDir(c.Root) // an error appears when it is opened
	}
	if dir != "" && sandbox.Overlap(p.Real, realPath(dir).Real) {
		return fmt.Errorf("is in or around the state directory %s; keep that elsewhere, with state_dir", dir)
	}
	if writable && c.dir != "" && (sandbox.Within(p.Real, realPath(c.dir).Real) || sandbox.Within(p.Real, realPath(c.file).Real)) {
		return errors.New("has the configuration file, which the agent could change; keep that elsewhere, or use the profile read-only")
	}
	return nil
}

// ofSystem are directories where nothing may be made writable: with them, a process changes the
// machine, or other users.
var ofSystem = []string{"/proc", "/sys", "/dev", "/etc"}

// checkSystem refuses a path of write that is one of the system.
func checkSystem(p sandbox.Path) error {
	for _, dir := range ofSystem {
		if sandbox.Within(dir, p.Name) || sandbox.Within(dir, p.Real) {
			return fmt.Errorf("is in %s, with which an agent could change the machine; use read, or copy what the agent may change elsewhere", dir)
		}
	}
	return nil
}

// socketWarnings returns which paths of a sandbox have the control socket. A read-only path stops
// no connection: the daemon then only sees that its caller is a part of a run.
func (c *Config) socketWarnings(key string, e Entry) (warnings []error) {
	set := c.sandboxOf(e)
	sockets := c.controlSockets()
	for name, list := range map[string][]sandbox.Path{"read": set.Read, "write": set.Write} {
		for i, p := range list {
			at := slices.IndexFunc(sockets, func(dir string) bool { return sandbox.Within(p.Real, dir) })
			if at >= 0 {
				field := fmt.Sprintf("%s.sandbox.%s[%d]", key, name, i)
				warnings = append(warnings, wrong(field, "%s: has the directory of the control socket %s, "+
					"to which the agent could connect; name what it needs instead", p.Name, sockets[at]))
			}
		}
	}
	return warnings
}

// controlSockets returns the directories where a control socket may be.
func (c *Config) controlSockets() (dirs []string) {
	for _, p := range client.SocketPaths(c.StateDir, "") {
		dirs = append(dirs, p.Dir)
	}
	if c.ApproversSocket != "" {
		dirs = append(dirs, filepath.Dir(c.Resolve(c.ApproversSocket)))
	}
	for i, dir := range dirs {
		dirs[i] = realPath(dir).Real
	}
	return slices.DeleteFunc(dirs, func(dir string) bool { return dir == "." })
}

// staysInside refuses a path below a writable one that a symbolic link leads out of: the agent
// can change the link.
func staysInside(p sandbox.Path, writable []sandbox.Path) error {
	for _, dir := range writable {
		if dir.Name != "" && dir != p && sandbox.Within(dir.Name, p.Name) && !sandbox.Within(dir.Real, p.Real) {
			return fmt.Errorf("a symbolic link leads out of %s, to %s; name that directly", dir.Name, p.Real)
		}
	}
	if info, err := os.Lstat(p.Name); err == nil && info.Mode()&os.ModeSymlink != 0 {
		return fmt.Errorf("is a symbolic link to %s; name that directly", p.Real)
	}
	return nil
}
