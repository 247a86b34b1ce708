package agent

import (
	"cmp"
	"fmt"
	"time"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/sandboxing/sandbox"
	"mailboxd/internal/stores/dirtree"
)

// How far the search for set-user-id files goes after a run. That of an agent without a sandbox
// costs a few milliseconds at most, so that it delays no result.
const (
	setIDEntries     = 200_000
	setIDTime        = 10 * time.Second
	setIDPlainCount  = 3000
	setIDPlainTime   = 5 * time.Millisecond
	maxSetIDNamed    = 20
	setIDExplanation = "a set-user-id or set-group-id file, which lets others act as its owner"
)

// reviewSetID returns for people which set-user-id and set-group-id files a run left. In a sandbox
// the filter refuses them. In the place of a sandbox that the machine can't make, nothing does, and
// the bits are taken away where the agent was meant to write. An agent without a sandbox may have a
// use for such files: they stay, except in its run directory.
func (g *Agent) reviewSetID(j task.Job, exit task.Exit) []string {
	if exit.PID == 0 || exit.Sandboxed || exit.Confined {
		return nil
	}
	meant := g.binding.Sandbox.Active()
	s := dirtree.SetIDSearch{Since: exit.Started, Entries: setIDPlainCount, Time: setIDPlainTime}
	if meant {
		s.Entries, s.Time = setIDEntries, setIDTime
	}
	if j.Dir != "" {
		s.In(j.Dir, true)
	}
	for _, p := range g.workPlaces(j, meant) {
		s.In(p, meant)
	}
	var reasons []string
	for i, f := range s.Found {
		if i == maxSetIDNamed {
			reasons = append(reasons, fmt.Sprintf("the agent made %d more set-user-id or set-group-id files", len(s.Found)-i))
			break
		}
		then := "remove it unless you need it"
		if f.Cleared {
			then = "these bits were taken away"
		}
		reasons = append(reasons, fmt.Sprintf("the agent made %q, %s: %s", f.Path, setIDExplanation, then))
	}
	if meant && s.Ended != "" {
		reasons = append(reasons, "not all files were searched for set-user-id and set-group-id files: "+s.Ended)
	}
	return reasons
}

// workPlaces returns the directories where the agent of a run works, without its run directory. With
// all, these are all that a sandbox would let it write.
func (g *Agent) workPlaces(j task.Job, all bool) (dirs []string) {
	cwd, _ := g.Cwd(j.Task) // without a directory, none is searched
	places := []sandbox.Path{{Real: cmp.Or(j.Cwd, cwd)}}
	if clone, _, err := g.cloneOf(j); err == nil {
		places = append(places, clone...)
	}
	if settings := g.sandboxFor(j); all && settings.Profile != sandbox.ReadOnly {
		places = append(places, existing(settings.Write)...)
	}
	for _, p := range places {
		if p.Real != "" {
			dirs = append(dirs, p.Real)
		}
	}
	return dirs
}
