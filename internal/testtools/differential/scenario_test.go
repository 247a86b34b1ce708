package differential_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A scenario is a configuration and what happens in its order.
type scenario struct {
	seed   uint64
	limits limits
	steps  []step
}

// A step is one thing that happens: a verb of perform, and what it needs.
type step struct {
	verb string
	args []string
}

func (s step) String() string { return s.verb + " " + strings.Join(s.args, " | ") }

// newScenario is the scenario of a seed.
func newScenario(seed uint64) scenario {
	r := rand.New(rand.NewPCG(seed, 0))
	g := generator{writer: &writer{Rand: r}, scenario: scenario{seed: seed, limits: pickLimits(r)}}
	g.alone = g.limits.budgets != "" || g.limits.queueOf > 0
	for range 5 + r.IntN(11) {
		g.next()
	}
	return g.scenario
}

type generator struct {
	*writer
	scenario
}

func (g *generator) add(verb string, args ...string) {
	g.steps = append(g.steps, step{verb, args})
}

// next adds one step, sometimes a few that belong together.
func (g *generator) next() {
	if len(g.sent) == 0 {
		g.requests()
		return
	}
	switch n := g.IntN(100); {
	case n < 32:
		g.requests()
	case n < 41:
		g.add("append", g.file(), g.message()+"\n")
	case n < 46:
		g.again()
	case n < 50:
		g.add("append", g.file(), g.broken()+"\n")
	case n < 52:
		g.tear()
	case n < 64:
		g.open()
	case n < 78:
		g.control()
	case n < 84:
		g.fetch()
	case n < 88:
		g.putFile()
	case n < 92:
		g.read()
	default:
		g.die()
	}
}

func (g *generator) file() string { return g.pick("a", "a", "b") + ".jsonl" }

// putFile puts a result of somebody else there: before its task is asked for, or while its
// agent is to fetch it or runs.
func (g *generator) putFile() {
	kind := g.pick("ok", "error")
	s, ok := g.earlierOf("pull", "slow", "again")
	switch {
	case !ok || g.one(2):
		at, first := len(g.steps), len(g.sent)
		g.requests()
		g.steps = slices.Insert(g.steps, at, step{"place", []string{g.sent[first].id, kind, g.sent[first].agent}})
	case s.agent == "pull":
		g.add("place", s.id, kind, s.agent)
	default:
		g.add("place", s.id, g.pick(kind, "nonsense"), s.agent) // elsewhere it would be looked at again and again
	}
}

// requests asks for one task, or for a few at once where nothing depends on which of them
// ends first.
func (g *generator) requests() {
	file := g.file()
	g.into = file
	text := g.request() + "\n"
	if !g.alone && g.limits.concurrency > 2 && g.one(3) {
		for range 1 + g.IntN(3) {
			text += g.request() + "\n"
		}
	}
	g.add("append", file, text)
}

// again sends an earlier line once more, or with other content. It goes into the file of
// the first one: what begins another file in the same way may be a copy of it.
func (g *generator) again() {
	s := g.earlier()
	if s.line == "" {
		return
	}
	line := s.line
	if !g.one(3) {
		line = strings.Replace(strings.Replace(line, `"do it"`, `"do it otherwise"`, 1), `"a task"`, fmt.Sprintf(`"another task %d"`, g.IntN(3)), 1)
	}
	g.add("append", s.file, line+"\n")
}

// tear writes a part of a line, and the rest of it later.
func (g *generator) tear() {
	g.into = "torn.jsonl"
	line := g.request()
	cut := 1 + g.IntN(len(line)-1)
	g.add("append", "torn.jsonl", line[:cut])
	if g.one(3) {
		g.add("restart", "KILL")
	}
	g.add("append", "torn.jsonl", line[cut:]+"\n")
}

// open gives a run that waits its word.
func (g *generator) open() {
	s, ok := g.earlierOf("slow", "again", "progress", "is-helped", "delegates")
	if !ok {
		return
	}
	id := s.id
	if s.agent == "is-helped" || s.agent == "delegates" {
		id += ".1"
	}
	g.add("word", id, g.pick("ok", "ok", "ok", "fail", "again", "die", "junk"))
}

// control is a command of a person.
func (g *generator) control() {
	id := g.earlier().id
	switch g.IntN(14) {
	case 0, 1:
		g.add("cli", "approve", id, "--json")
	case 2:
		g.add("cli", "approve", id, "--note", "agreed", "--as", g.pick("root", "carol"))
	case 3:
		g.add("cli", "deny", id, "--reason", "not now", "--json")
	case 4, 5:
		g.add("post", "/v1/tasks/"+id+"/cancel", `{"reason":"wrong input"}`)
	case 6:
		g.add("cli", "hold", id, "--reason", "wait")
	case 7:
		g.add("post", "/v1/tasks/"+id+"/release", `{}`)
	case 8:
		g.add("cli", "retry", id, "--json")
	case 9:
		g.add("post", "/v1/tasks/"+id+"/retry", `{"reason":"once more"}`)
	case 10:
		g.add("post", "/v1/pause", fmt.Sprintf(`{"agent":%q,"reason":"down"}`, g.pick("text", "slow", "worker", "pull", "nobody", "", "")))
		if g.one(2) { // it has to outlive the daemon
			g.add("restart", "TERM")
			g.requests()
		}
	case 11, 12:
		g.add("post", "/v1/resume", fmt.Sprintf(`{"agent":%q}`, g.pick("text", "slow", "worker", "pull", "")))
	default:
		g.add("cli", "reply", id, "the second one", "--as", g.earlier().requester, "--json")
	}
}

// fetch is what a program does that fetches tasks.
func (g *generator) fetch() {
	agent := g.pick("pull", "pull", "pull-clowl", "pull-cap")
	s, ok := g.earlierOf("pull", "pull-clowl", "pull-cap")
	if ok && g.one(2) {
		agent = s.agent
	}
	switch {
	case !ok || g.one(2):
		g.add("claim", agent)
	case g.one(4):
		g.add("renew", s.id, s.agent)
	default:
		g.add("submit", s.id, s.agent, g.pick("lease", "lease", "none"), g.pick(`{"summary":"by hand","actions":[]}`, `{"status":"ok","output":{"summary":"an envelope","actions":[]}}`, `{"status":"error","output":{"summary":"no","actions":[]},"error":{"kind":"agent_error","message":"no"}}`, `7`))
	}
}

// read is a question that changes nothing.
func (g *generator) read() {
	id := g.earlier().id
	switch g.IntN(8) {
	case 0:
		g.add("cli", "ps", "--all", "--json")
	case 1:
		g.add("cli", "show", id, "--json")
	case 2:
		g.add("cli", "result", id, "--json")
	case 3:
		g.add("cli", "events", "--task", id, "--json")
	case 4:
		g.add("cli", "thread", g.pick(id, "c1"), "--json")
	case 5:
		g.add("cli", "budget", "--json")
	case 6:
		g.add("cli", "trace", id, "--json")
	default:
		g.add("cli", "ps", "--held", "--json")
	}
}

// die ends the daemon, sometimes has something happen, and starts another one.
func (g *generator) die() {
	signal := g.pick("KILL", "KILL", "TERM")
	switch g.IntN(4) {
	case 0:
		g.add("down", signal)
		g.requests()
		g.add("up")
	case 1:
		g.add("down", signal)
		g.open()
		g.add("up")
	case 2:
		g.add("down", signal)
		g.add("cli", g.pick("ps", "ps", "hold"), "--json")
		g.add("up")
	default:
		g.add("restart", signal)
	}
}
