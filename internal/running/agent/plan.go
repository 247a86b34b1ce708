package agent

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/broker"
	"mailboxd/internal/running/external"
	"mailboxd/internal/running/filehash"
	"mailboxd/internal/running/remote"
	"mailboxd/internal/stores/worktree"
)

// ProgramRule says what an approval covers of a program and of the scripts that its command names.
// "" is ByPath for the programs of profiles, which update themselves, and ByContent for others.
type ProgramRule string

// The rules, as approval.program has them.
const (
	ByContent ProgramRule = "content" // their content: after a change, a person is asked again
	ByPath    ProgramRule = "path"    // their paths: a change needs no other approval
)

// of returns the rule for a binding.
func (r ProgramRule) of(b Binding) ProgramRule {
	switch {
	case r != "":
		return r
	case b.updatesItself():
		return ByPath
	}
	return ByContent
}

// updatesItself reports whether the command is the program of a profile. A program of the
// operator's that stands for it, such as a wrapper, has another name.
func (b Binding) updatesItself() bool {
	r := recipes[b.Profile]
	return b.Worker == nil && len(r.command) > 0 && len(b.Command) > 0 && filepath.Base(b.Command[0]) == r.command[0]
}

// A Planner makes the plans that people approve. It may be used concurrently, and not copied. The
// zero value is ready, with an empty key.
type Planner struct {
	Key    func() []byte               // of the HMAC of values; nil: empty
	Known  string                      // the directory that remembers tools of MCP servers; "": nothing does
	Cards  remote.Known                // of agents of A2A
	Remote func(agent string) []string // the digests of its bindings at runners; nil: there are none
	hashes filehash.Hashes
}

// serviceOf returns a service with what a plan says of it: the digest of the card of an agent of A2A.
func (p *Planner) serviceOf(s task.Service) *task.Service {
	if s.Mode == task.ServiceA2A {
		s.Card = p.Cards.Digest(s.URL, cardOf(s))
	}
	return &s
}

// LookAgain has the next plan for an agent of A2A cover the card that it has now.
func (p *Planner) LookAgain(b Binding) {
	if s := b.Service; s != nil && s.Mode == task.ServiceA2A {
		p.Cards.Look(s.URL, cardOf(*s))
	}
}

func cardOf(s task.Service) remote.Reader {
	return func(ctx context.Context) (remote.Card, error) {
		return external.ReadCard(ctx, s, os.Getenv(s.BearerEnv))
	}
}

// PlanOf returns what an approval of a start covers: the run of a task with a binding, whose Cwd is
// the directory of the task. It reads the files that the command names, and runs none. The plan has
// no Versions: see AddVersions.
func (p *Planner) PlanOf(t envelope.Task, b Binding, terms task.Terms, rule ProgramRule) client.Plan {
	plan := client.Plan{
		Format: client.PlanFormat, Request: t.Hash, Command: b.Command, Cwd: b.Cwd, Worktree: b.Worktree || t.Worktree(), Base: t.Base(),
		Continues:  t.Continues(),
		Permission: string(b.Permission), Tools: terms.Tools, Calls: terms.Calls, Budget: terms.Budget, Sandbox: b.Sandbox, Env: p.valuesOf(b.Env),
	}
	plan.RoundOf, _ = t.RoundOf()
	if plan.Worktree {
		plan.Copy, plan.Setup = b.Copy, b.Setup
	}
	if b.Manifest != nil {
		plan.Manifest = b.Manifest.SHA256
	}
	if plan.Remote = b.Remote != nil; plan.Remote && p.Remote != nil {
		plan.Bindings = p.Remote(b.ID)
	}
	if b.Inbox != nil {
		plan.Inbox = b.Inbox.File
		return plan
	}
	if b.Worker != nil {
		plan.Command = b.Worker.Command
	}
	if b.Service != nil {
		plan.Service, plan.Command = p.serviceOf(*b.Service), b.Service.Command
	}
	if len(plan.Command) == 0 {
		return plan
	}
	byContent := rule.of(b) == ByContent
	if plan.Executable = executable(plan.Command[0], byContent); byContent {
		plan.Files = p.contents(plan, b)
	}
	p.addSetup(&plan, b, rule != ByPath)
	return plan
}

// addSetup adds the program and the scripts of the setup to the files of a plan. The program is none
// of a profile, so it counts by its content unless the operator wants its path.
func (p *Planner) addSetup(plan *client.Plan, b Binding, byContent bool) {
	if len(plan.Setup) == 0 {
		return
	}
	setup := *plan
	setup.Command, setup.Executable = plan.Setup, executable(plan.Setup[0], byContent)
	files := map[string]string{setup.Executable: ""}
	if byContent {
		files = p.contents(setup, b)
	}
	maps.Copy(files, plan.Files)
	plan.Files = files
}

// executable returns the absolute path of a command's program; "" if there is none. Links are
// resolved on request: an update of a program may put another link in its place.
func executable(command string, resolve bool) string {
	path, err := exec.LookPath(command)
	if err != nil {
		return ""
	}
	if resolve {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			return resolved
		}
	}
	return path
}

// gitTimeout limits the time for finding committed scripts.
const gitTimeout = 10 * time.Second

// contents returns the digests of the program and the scripts of a plan's command, by path. In a
// worktree, a script with a relative path is the committed one, by its object in git: the run gets a
// clone of the repository.
func (p *Planner) contents(plan client.Plan, b Binding) map[string]string {
	files := map[string]string{}
	if plan.Executable != "" {
		files[plan.Executable] = p.hashes.Of(plan.Executable)
	}
	var committed map[string]worktree.CommittedFile
	if relative := relativeArguments(plan.Command, b.Worker != nil); plan.Worktree && len(relative) > 0 {
		ctx, stop := context.WithTimeout(context.Background(), gitTimeout)
		defer stop()
		committed, _ = worktree.Committed(ctx, plan.Cwd, plan.Base, relative) // without a repository, the run doesn't start either
	}
	for _, script := range scriptsOf(plan.Command, b.Worker != nil, func(name string) candidate {
		if file, ok := committed[name]; ok {
			return candidate{path: cmp.Or(plan.Base, "HEAD") + ":" + file.Path, content: "git:" + file.Object, runnable: file.Executable || hasScriptName(name)}
		}
		if plan.Worktree && !filepath.IsAbs(name) {
			return candidate{}
		}
		return findCandidate(plan.Cwd, name)
	}) {
		if script.content == "" {
			script.content = p.hashes.Of(script.path)
		}
		files[script.path] = script.content
	}
	return files
}

// AddVersions adds to a plan, for the person who is asked, the definitions of tools, and the versions of the
// program and the scripts if its rule is ByPath.
func (p *Planner) AddVersions(plan *client.Plan, b Binding) {
	plan.Definitions = broker.Known(p.Known, plan.Tools)
	if _, covered := plan.Files[plan.Executable]; covered || plan.Executable == "" {
		return
	}
	plan.Versions = map[string]string{plan.Executable: p.versionOf(plan.Executable)}
	for _, script := range scriptsOf(plan.Command, b.Worker != nil, func(name string) candidate {
		if plan.Worktree && !filepath.IsAbs(name) {
			return candidate{}
		}
		return findCandidate(plan.Cwd, name)
	}) {
		plan.Versions[script.path] = p.versionOf(script.path)
	}
}

// valuesOf returns the HMAC of the values of variables, in hexadecimal, by their names. The name is
// part of it, so that equal values don't look alike. A value is "" if the variable isn't set.
func (p *Planner) valuesOf(list []string) map[string]string {
	if len(list) == 0 {
		return nil
	}
	var key []byte
	if p.Key != nil {
		key = p.Key()
	}
	values := map[string]string{}
	for _, entry := range list {
		name, value, given := strings.Cut(entry, "=")
		if !given {
			value, given = os.LookupEnv(name)
		}
		if _, earlier := values[name]; !given {
			if !earlier {
				values[name] = ""
			}
			continue
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(name + "\x00" + value))
		values[name] = hex.EncodeToString(mac.Sum(nil))
	}
	return values
}
