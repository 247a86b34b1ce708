package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/host"
	"mailboxd/internal/running/runner"
	"mailboxd/internal/sandboxing/cgroup"
	"mailboxd/internal/sandboxing/confine"
	"mailboxd/internal/sandboxing/sandbox"
	"mailboxd/mailbox"
)

// Files in the run directory of a sandboxed run. The agent writes only below the work
// directory.
const (
	sandboxFile = "sandbox.json" // the settings; its existence says that the run was prepared for a sandbox
	workName    = "work"
)

// workDir returns the directory for the files that an agent writes: the run directory, or
// its work directory in a sandbox.
func workDir(dir string) string {
	if dir == "" {
		return ""
	}
	if _, err := os.Lstat(filepath.Join(dir, sandboxFile)); err != nil {
		return dir
	}
	return filepath.Join(dir, workName)
}

// A noSandboxError says why a run has no sandbox. Nothing was started.
type noSandboxError struct{ cause error }

func (e *noSandboxError) Error() string {
	return "the agent's sandbox cannot be made: " + e.cause.Error()
}

// Unwrap returns the cause.
func (e *noSandboxError) Unwrap() error { return e.cause }

// findSandbox returns the program for the agent's sandbox: zero if the agent has none, or runs
// without one where the machine has none. The weaker sandbox is this program.
func (g *Agent) findSandbox() (host.Bubblewrap, error) {
	if !g.binding.Sandbox.Active() {
		return host.Bubblewrap{}, nil
	}
	b, err := host.FindBubblewrap()
	switch missing := g.binding.Sandbox.Missing; {
	case err == nil || missing == sandbox.Open:
		return b, nil
	case missing != sandbox.Weaker:
		return host.Bubblewrap{}, &noSandboxError{err}
	case len(g.binding.Sandbox.Network)+len(g.binding.Sandbox.SetupNetwork) > 0: // config check refuses it
		return host.Bubblewrap{}, &noSandboxError{fmt.Errorf("%w; and the weaker one has no network", err)}
	}
	if _, wrong := confine.Version(); wrong != nil {
		return host.Bubblewrap{}, &noSandboxError{fmt.Errorf("%w; and no weaker one: %w", err, wrong)}
	}
	return host.Bubblewrap{Path: runner.WeakerProgram}, nil
}

// makeWorkDir makes the directory that a sandboxed agent may write.
func (g *Agent) makeWorkDir(j task.Job) error {
	if err := os.Mkdir(inDir(j, workName), 0o700); err != nil {
		return err
	}
	settings := g.sandboxFor(j)
	if g.inWorktree(j.Task) {
		settings.Cwd = sandbox.Path{} // the agent can read the file, and isn't told the source repository
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	if err := create(inDir(j, sandboxFile), append(text, '\n')); err != nil || !g.binding.Sandbox.Tasks {
		return err
	}
	if _, err := mailbox.RunFilesDir(g.opts.Own.State); err != nil {
		return err
	}
	return create(g.tasksFile(j), nil)
}

// tasksFile returns the task file of a run in a sandbox. It is outside of the mailbox, so that
// only this run can write to it.
func (g *Agent) tasksFile(j task.Job) string {
	f := mailbox.RunFile{Run: j.RunID, ID: j.Task.ID, Revision: j.Revision, Attempt: j.Attempt}
	return f.Path(g.opts.Own.State)
}

// submitVariable names the task file of a run in a sandbox.
const submitVariable = reserved + "SUBMIT_FILE"

// addTasks adds the task file of a run to its sandbox. It appears in the place of a task file
// of the mailbox, except in the weaker sandbox, which shows files where they are.
func (g *Agent) addTasks(s *runner.Spec, r *sandbox.Run, j task.Job, b host.Bubblewrap) {
	if !g.binding.Sandbox.Tasks || j.RunID == "" {
		return
	}
	r.Tasks = sandbox.Path{Name: filepath.Join(g.opts.Own.Root, "tasks", j.RunID+".jsonl"), Real: g.tasksFile(j)}
	if b.Path == runner.WeakerProgram {
		r.Tasks.Name = r.Tasks.Real
	}
	s.Env = append(s.Env, submitVariable+"="+r.Tasks.Name)
}

// enclose adds the sandbox to the Spec of a run.
func (g *Agent) enclose(s *runner.Spec, j task.Job, b host.Bubblewrap) error {
	program, err := findProgram(s.Argv[0])
	if err != nil {
		return &runner.SpawnError{Command: s.Argv[0], Err: err}
	}
	s.Argv[0] = program
	settings := g.sandboxFor(j)
	r := sandbox.Run{Dir: j.Dir, Work: inDir(j, workName), Root: os.Getuid() == 0}
	r.System, r.Masked = host.SystemPaths()
	r.Kernel = host.KernelSettings()
	if s.Cwd != "" && s.Cwd != g.continuedDir(j) {
		r.Cwd = sandbox.Path{Name: filepath.Clean(s.Cwd), Real: filepath.Clean(s.Cwd)}
		if settings.Cwd.Name == r.Cwd.Name {
			r.Cwd = settings.Cwd
		}
	}
	r.Home = homeOf(s.Env, r.System)
	r.Write = existing(slices.Concat(settings.Write, settings.Home))
	for _, p := range existing(settings.Home) {
		r.Logins = append(r.Logins, p.Real)
	}
	r.Read = existing(settings.Read)
	write, read, err := g.cloneOf(j)
	if err != nil {
		return err
	}
	r.Write = append(r.Write, write...)
	if err := g.checkPrivate(r); err != nil {
		return &noSandboxError{err}
	}
	r.Read = append(r.Read, read...)
	g.addSessions(&r, j)
	refs := g.refs(j)
	if len(refs) <= mostRefs {
		r.Read = append(r.Read, refs...)
	}
	r.Read = append(r.Read, programPaths(program, r)...)
	r.Read = append(r.Read, programPaths(hostedProgram(s.Argv), r)...)
	if err := addSetupProgram(s, &r); err != nil {
		return err
	}
	writes := settings.Profile
	if s.Setup.Argv != nil {
		writes = g.binding.Sandbox.Profile // of the setup
	}
	if err := protectGit(j, &r, writes, b.Path == runner.WeakerProgram); err != nil {
		return err
	}
	g.addTasks(s, &r, j, b)
	needs := SandboxNeedsOf(g.binding.Profile)
	s.Env = withDefaults(s.Env, needs.Env)
	network, err := gateOf(&r, settings.Network, needs.Unneeded)
	if err == nil && network == nil && s.Broker != "" {
		err = showProgram(&r)
	}
	if err != nil {
		return &noSandboxError{err}
	}
	if s.Setup.Network, err = g.setupNetwork(s, &r, network); err != nil {
		return &noSandboxError{err}
	}
	options, setup := settings.Options, g.binding.Sandbox.Options
	if b.Path == runner.WeakerProgram {
		options, setup = settings.WeakerOptions, g.binding.Sandbox.WeakerOptions
	}
	if len(refs) > mostRefs {
		if err := addManyRefs(j, &r, refs, b.Path == runner.WeakerProgram); err != nil {
			return &noSandboxError{err}
		}
	}
	if s.Setup.Argv != nil {
		s.Setup.Options = setup(r)
	}
	s.Sandbox = runner.Sandbox{Program: b.Path, Options: options(r), ByName: b.ByName, Network: network, Limits: cgroup.Limits{Memory: settings.Memory, Processes: settings.Processes}}
	return nil
}

// gateOf returns the arguments of the gate of a run, and shows its sandbox the program that finds
// the gate; none without a network list.
func gateOf(r *sandbox.Run, listed sandbox.Hosts, unneeded sandbox.UnneededHosts) ([]string, error) {
	if len(listed) == 0 {
		return nil, nil
	}
	return sandbox.GateArguments(listed, unneeded), showProgram(r)
}

// showProgram shows a sandbox this program, whose first step there finds the gate and the tool broker.
func showProgram(r *sandbox.Run) error {
	self, err := os.Executable()
	if err == nil {
		r.Read = append(r.Read, sandbox.Path{Name: sandbox.EnterPath, Real: self})
	}
	return err
}

// findProgram returns the absolute path of a command.
func findProgram(name string) (string, error) {
	if strings.Contains(name, "/") {
		_, err := os.Stat(name)
		return name, err
	}
	path, err := exec.LookPath(name)
	if bare, ok := errors.AsType[*exec.Error](err); ok {
		err = bare.Err // without the name
	}
	return path, err
}

// homeOf returns the home directory that a sandbox hides; "" if it has none to hide.
func homeOf(env []string, system []sandbox.Path) string {
	for _, entry := range env {
		home, ok := strings.CutPrefix(entry, "HOME=")
		if !ok {
			continue
		}
		home = filepath.Clean(home)
		if !filepath.IsAbs(home) || home == "/" || inSystem(home, system) {
			return ""
		}
		return home
	}
	return ""
}

func inSystem(path string, system []sandbox.Path) bool {
	return slices.ContainsFunc(system, func(p sandbox.Path) bool { return sandbox.Within(p.Name, path) })
}

// existing returns the paths that exist.
func existing(paths []sandbox.Path) []sandbox.Path {
	return slices.DeleteFunc(slices.Clone(paths), func(p sandbox.Path) bool {
		_, err := os.Lstat(p.Real)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// checkPrivate refuses a sandbox that has a directory of mailboxd, or the whole home
// directory.
func (g *Agent) checkPrivate(r sandbox.Run) error {
	for _, p := range slices.Concat(r.Read, r.Write, []sandbox.Path{r.Cwd}) {
		if p.Real == "" || p.Real == r.Work {
			continue
		}
		for _, dir := range []string{resolved(g.opts.Own.Root), resolved(g.opts.Own.State)} {
			if dir != "" && sandbox.Overlap(p.Real, dir) {
				return fmt.Errorf("%s: is in or around %s, a directory of mailboxd", p.Name, dir)
			}
		}
		if r.Home != "" && sandbox.Within(p.Real, r.Home) {
			return fmt.Errorf("%s: would show the whole home directory %s", p.Name, r.Home)
		}
	}
	return nil
}

// refs returns the files that the task names. The checks before the run have admitted them.
func (g *Agent) refs(j task.Job) []sandbox.Path {
	if g.opts.FindRef == nil {
		return nil
	}
	var paths []sandbox.Path
	for _, ref := range j.Task.Refs {
		if path, err := g.opts.FindRef(ref.URI); err == nil && path != "" {
			paths = append(paths, sandbox.Path{Name: path, Real: path})
		}
	}
	return paths
}

// notEnclosed returns the outcome of a run without an agent, because bubblewrap failed.
func (g *Agent) notEnclosed(j task.Job, exit task.Exit) task.Outcome {
	command := "the agent's command"
	if exit.Setup {
		command = setupName
	}
	kind, message := envelope.SandboxUnavailable, "the agent's sandbox cannot be made: "+exit.Reason
	if strings.HasPrefix(exit.Reason, "bwrap: execvp ") || strings.HasPrefix(exit.Reason, "mailboxd: start ") { // the sandbox was complete
		kind, message = envelope.SpawnFailed, command+" cannot be started in its sandbox: "+exit.Reason
	}
	o := g.notStarted(j, kind, message)
	o.Exit.Cause = task.CauseSandbox
	return o
}

// sandboxControls are what a sandbox enforces.
var sandboxControls = []envelope.Control{envelope.ControlFilesystem, envelope.ControlNetwork, envelope.ControlMailbox}

// addSandbox adds what the sandbox enforced. Without a sandbox that was configured, nothing
// enforced it.
func (g *Agent) addSandbox(j task.Job, levels envelope.Levels, exit task.Exit) {
	level, held := envelope.LevelAdvisory, exit.Sandboxed || exit.Confined
	switch {
	case exit.Confined:
		level = envelope.LevelPartial
	case exit.Sandboxed:
		level = envelope.LevelKernel
	}
	if held || g.binding.Sandbox.Active() && exit.PID != 0 {
		for _, c := range sandboxControls {
			levels[c] = level
		}
	}
	if held && levels[envelope.ControlSensitivity] == envelope.LevelDaemon && g.contained(j) {
		levels[envelope.ControlSensitivity] = level
	}
	if exit.Sandboxed && levels[envelope.ControlTools] == envelope.LevelAgentFlag && g.leavesSandbox(j) {
		levels[envelope.ControlTools] = level // the program's own sandbox is off
	}
	if held && levels[envelope.ControlRefs] == envelope.LevelDaemon {
		levels[envelope.ControlRefs] = level
	}
}

// contained reports whether the sandbox of a run lets the task reach only hosts that may see
// it. The run may have begun with another configuration than the current one.
func (g *Agent) contained(j task.Job) bool {
	if g.workers != nil {
		return g.binding.Sandbox.Contains(j.Task.Sensitivity)
	}
	var settings sandbox.Settings
	text, err := os.ReadFile(inDir(j, sandboxFile))
	if err != nil || json.Unmarshal(text, &settings) != nil {
		return false
	}
	return settings.Contains(j.Task.Sensitivity)
}
