package differential_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// An agent is one of the configuration.
type agent struct {
	id   string
	more string // members of its entry besides the id and its command
	exec string // members of exec besides the command
	way  string // how it is run; "" is exec
}

// agents are those of every scenario. Each plays the part of agent.sh that has its name.
var agents = []agent{
	{id: "text", exec: "output: text"},
	{id: "json", exec: "output: json"},
	{id: "envelope"},
	{id: "costly"},
	{id: "partial"},
	{id: "refuses"},
	{id: "file"},
	{id: "fails"},
	{id: "junk"},
	{id: "stubborn", more: "retries: 1, backoff: 10ms"},
	{id: "second", more: "retries: 2, backoff: 10ms", exec: "output: text"},
	{id: "careless", more: "retries: 1, backoff: 10ms, idempotent: true"},
	{id: "hangs", more: "timeout: 100ms"},
	{id: "progress"},
	{id: "slow", more: "concurrency: 2, retries: 1, backoff: 10ms"},
	{id: "again", more: "concurrency: 2, idempotent: true, retries: 2, backoff: 10ms"},
	{id: "once", more: "resend: refuse"},
	{id: "local", more: "tools: [read, http], max_sensitivity: confidential, task_types: [work], environments: [prod]"},
	{id: "gives-up", more: "on_error: [{codes: [agent_crashed], do: reassign, to: text}]"},
	{id: "escalates", more: "on_error: [{codes: [agent_crashed], do: escalate, to: user}]"},
	{id: "worker", way: "worker", more: "retries: 1, backoff: 10ms"},
	{id: "pull", way: "inbox"},
	{id: "pull-clowl", way: "inbox", more: "dialect: clowl"},
	{id: "pull-cap", way: "inbox", more: "dialect: cap"},
	{id: "clowl", more: "dialect: clowl"},
	{id: "errs", more: "dialect: clowl"},
	{id: "asker", more: "dialect: clowl"},
	{id: "hands-over", more: "dialect: clowl"},
	{id: "forks", more: "dialect: clowl"},
	{id: "is-helped", more: "dialect: clowl"},
	{id: "helped-badly", more: "dialect: clowl"},
	{id: "circle", more: "dialect: clowl"},
	{id: "circle-2", more: "dialect: clowl"},
	{id: "mute", more: "dialect: clowl"},
	{id: "cap", more: "dialect: cap"},
	{id: "cap-fails", more: "dialect: cap"},
	{id: "wonders", more: "dialect: cap"},
	{id: "impatient", more: "dialect: cap"},
	{id: "delegates", more: "dialect: cap"},
	{id: "trespasses", more: "dialect: cap, definition: trespasses.json"},
	{id: "overseen", more: "dialect: cap, definition: overseen.json"},
	{id: "overseer", more: "dialect: cap"},
	{id: "withheld", more: "dialect: cap, definition: withheld.json"},
	{id: "rejects", more: "dialect: cap"},
}

// parts are the parts that are not named as their agents.
var parts = map[string]string{
	"again": "slow", "once": "text", "local": "partial", "gives-up": "fails", "escalates": "fails", "withheld": "overseen",
}

// waiting are the agents whose runs wait for a word.
var waiting = map[string]bool{"slow": true, "again": true, "progress": true}

// definitions are the definitions of agents.
var definitions = map[string]string{
	"trespasses.json": `{"id":"trespasses","system_prompt":"You try.","allowed_agents":["cap"],"delegate_rules":{"cap":{"when_to_delegate":"Always."}},"mcp_bindings":[],"overseer":null}`,
	"overseen.json":   `{"id":"overseen","system_prompt":"You write.","allowed_agents":[],"delegate_rules":{},"mcp_bindings":[],"overseer":"overseer"}`,
	"withheld.json":   `{"id":"withheld","system_prompt":"You write.","allowed_agents":[],"delegate_rules":{},"mcp_bindings":[],"overseer":"rejects"}`,
}

// limits are what a scenario sets of the configuration.
type limits struct {
	concurrency  int
	perRequester int
	queueOf      int // queue_per_requester
	budgets      string
	question     string // conversation.question_timeout
	lenient      bool
	policy       string
}

func pickLimits(r *rand.Rand) limits {
	l := limits{concurrency: 24, question: "10m"}
	if r.IntN(3) == 0 {
		l.concurrency = 1 + r.IntN(2)
	}
	if r.IntN(5) == 0 {
		l.perRequester = 1
	}
	if r.IntN(6) == 0 {
		l.queueOf = 2 + r.IntN(3)
	}
	if r.IntN(3) == 0 {
		l.budgets = `{requester: "*", per: day, tokens: 1500, usd_cents: 40}`
	}
	if r.IntN(3) == 0 {
		l.question = "150ms"
	}
	l.lenient = r.IntN(5) == 0
	l.policy = []string{"", "", "tools: warn, ", "budget: warn, ", "output_contract: off, ", "approval: warn, ", "lineage: off, "}[r.IntN(7)]
	return l
}

// yaml is the configuration of a mailbox.
func (l limits) yaml(dir string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "root: %s/box\nstate_dir: %s/state\nlog: {format: json, level: warn}\nnotice: {command: []}\n", dir, dir)
	fmt.Fprintf(&text, "intake: {rescan: 1s, max_line_bytes: 20000, lenient_legacy: %t}\n", l.lenient)
	fmt.Fprintf(&text, "limits: {concurrency: %d, per_requester: %d, queue_per_requester: %d}\n", l.concurrency, l.perRequester, l.queueOf)
	fmt.Fprintf(&text, "conversation: {question_timeout: %s}\n", l.question)
	fmt.Fprintf(&text, "policy: {%sbudgets: [%s]}\nagents:\n", l.policy, l.budgets)
	for _, a := range agents {
		part := a.id
		if parts[a.id] != "" {
			part = parts[a.id]
		}
		command := fmt.Sprintf("command: [sh, %s/agent.sh, %s]", dir, part)
		fmt.Fprintf(&text, "  - {id: %s, %s", a.id, separated(a.more))
		switch a.way {
		case "inbox":
			fmt.Fprint(&text, "inbox: {lease: 10m}}\n")
		case "worker":
			fmt.Fprintf(&text, "worker: {%s, in_flight: 2}}\n", command)
		default:
			fmt.Fprintf(&text, "exec: {%s%s}}\n", separated(a.exec), command)
		}
	}
	return text.String()
}

func separated(members string) string {
	if members == "" {
		return ""
	}
	return members + ", "
}
