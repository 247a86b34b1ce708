package differential_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A sent task is one that a line of the scenario asks for.
type sent struct {
	id, agent, dialect, requester string
	line, file                    string
}

// A writer writes random lines of all dialects. What it writes depends on its source of
// chance alone, never on what a build does.
type writer struct {
	*rand.Rand
	sent  []sent
	count int
	into  string // the file for which it writes
	alone bool   // no two tasks begin at once, for each changes what the other one may spend
}

func (w *writer) pick(from ...string) string { return from[w.IntN(len(from))] }

// one reports true once in so many times.
func (w *writer) one(in int) bool { return w.IntN(in) == 0 }

// earlier is a task that was asked for before, or one that nobody asked for.
func (w *writer) earlier() sent {
	if len(w.sent) == 0 || w.one(12) {
		return sent{id: "nobody-asked", agent: "text", requester: "ann", dialect: w.pick("ainl", "clowl", "cap")}
	}
	if w.one(2) {
		return w.sent[len(w.sent)-1]
	}
	return w.sent[w.IntN(len(w.sent))]
}

// earlierOf is one of the tasks for some agents, if there is any.
func (w *writer) earlierOf(agents ...string) (sent, bool) {
	var all []sent
	for _, s := range w.sent {
		for _, a := range agents {
			if s.agent == a {
				all = append(all, s)
			}
		}
	}
	if len(all) == 0 {
		return sent{}, false
	}
	return all[w.IntN(len(all))], true
}

// request is a line that asks for a task of its own.
func (w *writer) request() string {
	w.count++
	s := sent{id: fmt.Sprintf("t%d", w.count), file: w.into}
	switch w.IntN(5) {
	case 0, 1:
		s.dialect, s.requester, s.agent = "ainl", w.pick("tester", "tester", "planner"), w.agentForAINL()
		s.line = w.ainl(s)
	case 2, 3:
		s.dialect, s.requester, s.agent = "clowl", w.pick("ann", "ann", "bob"), w.agentForMessages()
		s.line = w.clowl(s)
	default:
		s.dialect, s.requester, s.agent = "cap", w.pick("user", "user", "orchestrator"), w.agentForMessages()
		s.line = fmt.Sprintf(`{"type":"delegation_notice","task_id":%q,"sender_id":%q,"recipient_id":%q,"context_summary":"do it","attachments":[%s]}`,
			s.id, s.requester, s.agent, w.pick("", "", `{"type":"text_snippet","text":"x"}`, `{"type":"file","path":"/etc/passwd"}`, `{"type":"spell"}`))
	}
	w.sent = append(w.sent, s)
	return s.line
}

func (w *writer) agentForAINL() string {
	return w.pick("text", "json", "envelope", "costly", "partial", "refuses", "file", "fails", "junk", "stubborn", "second", "careless",
		"hangs", "progress", "slow", "slow", "slow", "again", "again", "once", "local", "gives-up", "escalates", "worker", "worker", "pull", "pull",
		"clowl", "asker", "cap", "wonders", "delegates", "is-helped", "overseen", "pull-clowl", "nobody")
}

func (w *writer) agentForMessages() string {
	return w.pick("text", "envelope", "fails", "refuses", "second", "progress", "slow", "slow", "again", "worker", "pull", "pull-clowl", "pull-cap",
		"clowl", "errs", "asker", "asker", "hands-over", "forks", "is-helped", "is-helped", "helped-badly", "circle", "mute",
		"cap", "cap-fails", "wonders", "wonders", "impatient", "delegates", "delegates", "trespasses", "overseen", "overseen", "withheld", "gives-up", "escalates", "nobody")
}

// terms are members of a request that bind, in the names of AINL.
func (w *writer) terms() (all []string) {
	for range w.IntN(3) {
		all = append(all, w.pick(`"approval_required":"pre"`, `"approval_required":"pre"`, `"approval_required":"post"`, `"approval_required":"both"`,
			`"approval_required":"pre","human_approver":"carol"`, `"budget_limit":{"tokens":1000}`, `"budget_limit":{"tokens":500,"usd_cents":5}`,
			`"allowed_tools":["read"]`, `"allowed_tools":[]`, `"required_output_contract":{"format":"json","must_include_fields":["verdict"]}`,
			`"required_output_contract":{"schema_ref":"schema://ainl/agent-output/v1"}`, `"sensitivity":"confidential"`, `"sensitivity":"restricted"`,
			`"policy_context":{"environment":"prod"}`, `"deadline":"2020-01-01T00:00:00Z"`, `"deadline":"2100-01-01T00:00:00Z"`))
	}
	return all
}

// ainl is a request in AINL. A few are not as AINL wants them.
func (w *writer) ainl(s sent) string {
	members := []string{
		`"schema_version":"1.0"`, fmt.Sprintf(`"task_id":%q`, s.id), fmt.Sprintf(`"requester_id":%q`, s.requester), fmt.Sprintf(`"target_agent":%q`, s.agent),
		`"target_role":"executor"`, `"task_type":"work"`, `"description":"a task"`,
		fmt.Sprintf(`"input":{"refs":[],"payload":{"n":%d,"do":%q}}`, w.count, w.pick("work", "work", "work", "die", "again")),
	}
	if w.one(5) {
		members = append(members, `"callback":{"queue":"done"}`)
	}
	members = append(members, unique(w.terms())...)
	switch w.IntN(25) {
	case 0:
		members[4] = `"target_role":"reviewer"`
	case 1:
		members[5] = `"task_type":"other"`
	case 2:
		members = members[1:] // no schema_version
	case 3:
		members[7] = `"input":{"refs":["file:///etc/passwd"],"payload":{}}`
	case 4:
		members[7] = `"input":7`
	case 5:
		members = append(members, fmt.Sprintf(`"metadata":{"fill":%q}`, strings.Repeat("x", 15000+w.IntN(10000))))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// unique leaves out members whose name was there before.
func unique(members []string) (all []string) {
	seen := map[string]bool{}
	for _, m := range members {
		name, _, _ := strings.Cut(m, ":")
		if !seen[name] {
			all = append(all, m)
		}
		seen[name] = true
	}
	return all
}

// clowl is a REQ.
func (w *writer) clowl(s sent) string {
	to := fmt.Sprintf("%q", s.agent)
	switch n := w.IntN(16); {
	case w.alone:
	case n == 0:
		to = `["text","fails"]`
	case n == 1:
		to = `["slow","worker"]`
	}
	data := []string{`"description":"do it"`, fmt.Sprintf(`"n":%d`, w.count)}
	if terms := unique(w.terms()); len(terms) > 0 && w.one(2) {
		data = append(data, `"ainl":{`+strings.Join(terms, ",")+`}`)
	}
	more := ""
	if w.one(8) {
		more = w.pick(`"ctx":{"ref":"none.md"},`, `"ctx":{"ref":"none.md","inline":"what it says"},`, `"tid":"trace-1",`, `"auth":"sesame",`)
	}
	return fmt.Sprintf(`{"clowl":"0.2","mid":%q,"ts":1709078400,"p":"REQ","from":%q,"to":%s,"cid":%q,%s"body":{"t":"work","d":{%s}}}`,
		s.id, s.requester, to, w.pick("c1", "c2"), more, strings.Join(data, ","))
}

// message is a line about an earlier task.
func (w *writer) message() string {
	w.count++
	s, mid := w.earlier(), fmt.Sprintf("m%d", w.count)
	switch w.IntN(9) {
	case 0, 1:
		return w.about(mid, "INF", s.requester, s.agent, s.id, `"t":"work","d":{"text":"the second one"}`)
	case 2:
		return w.about(mid, "CNCL", w.pick(s.requester, s.requester, "eve"), s.agent, s.id, `"t":"cancel","d":{}`)
	case 3:
		return w.about(mid, "QRY", w.pick("ann", "eve"), "mailboxd", s.id, `"t":"status","d":{}`)
	case 4:
		return w.about(mid, w.pick("DONE", "ERR", "PROG", "ACK"), s.agent, s.requester, s.id, `"t":"work","d":{"summary":"by a line","code":"E009","msg":"no","retry":false}`)
	case 5:
		return w.about(mid, "DLGT", w.pick(s.agent, "eve"), "text", s.id, `"t":"work","d":{"delegation_mode":"assist","description":"a part"}`)
	case 6:
		return fmt.Sprintf(`{"type":"message","task_id":%q,"sender_id":%q,"recipient_id":%q,"content":"the second one"}`, s.id, s.requester, s.agent)
	case 7:
		return fmt.Sprintf(`{"type":"message","task_id":%q,"sender_id":%q,"recipient_id":%q,"content":%q}`, s.id, s.agent, s.requester, w.pick("by a line", "really?"))
	default:
		return fmt.Sprintf(`{"type":%q,"task_id":%q,"sender_id":%q,"recipient_id":%q,"error_code":499,"error_message":"stop","inquiry":"why?"}`,
			w.pick("error_response", "error_response", "oversight_inquiry"), s.id, w.pick(s.requester, "eve"), s.agent)
	}
}

func (w *writer) about(mid, p, from, to, pid, body string) string {
	return fmt.Sprintf(`{"clowl":"0.2","mid":%q,"ts":1709078400,"pid":%q,"p":%q,"from":%q,"to":%q,"cid":%q,"body":{%s}}`, mid, pid, p, from, to, w.pick("c1", "c2"), body)
}

// broken is a line that is no message.
func (w *writer) broken() string {
	w.count++
	id := fmt.Sprintf("b%d", w.count)
	line := w.ainl(sent{id: id, agent: "text", requester: "tester"})
	switch w.IntN(8) {
	case 0:
		return line[:1+w.IntN(len(line)-1)]
	case 1:
		return line + " and more"
	case 2:
		return "[" + line + "]"
	case 3:
		return w.ainl(sent{id: "../" + id, agent: "text", requester: "tester"})
	case 4:
		return "\xff\xfe nonsense"
	case 5:
		return line + w.ainl(sent{id: id + "b", agent: "text", requester: "tester"})
	case 6:
		return fmt.Sprintf(`{"clowl":"0.2","mid":%q,"ts":"now","p":"REQ","from":"ann","to":"text","cid":"c1","body":{"t":"work","d":{}}}`, id)
	default:
		return w.pick(`{}`, `null`, `{"agent_id":"text","role_types":["executor"]}`, fmt.Sprintf(`{"clowl":"0.1","mid":%q,"p":"REQ"}`, id),
			`{"clowl":"0.2","mid":"caps","ts":1709078400,"p":"CAPS","from":"eve","to":"mailboxd","cid":"c1","body":{"t":"capabilities","d":{"supports":["work"],"clowl":"0.2"}}}`)
	}
}
