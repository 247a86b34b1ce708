package envelope

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// A Section is an object whose members are controls: fields that limit a task or an agent.
type Section int

// The sections. Free objects have none: payload, metadata, meta, body.d, and what lies in them,
// except for ainl.
const (
	InRequest  Section = iota // an AgentTaskRequest, and ainl of the other dialects, which has members of one
	InManifest                // an AgentManifest
	InClutch                  // a message of Clutch
	inContract
	inBudget
	inPolicyContext
	inStandingApproval
	inSecurity
	inSecurityPolicy
)

// sections has the controls of each section and the sections inside it.
var sections = map[Section]struct {
	controls []string
	nullable []string           // those of them that may be null
	inside   map[string]Section // the sections in its members
}{
	InRequest: {
		controls: []string{
			"required_output_contract", "sensitivity", "deadline", "budget_limit", "allowed_tools", "approval_required",
			"human_approver", "policy_context",
		},
		nullable: []string{"deadline", "human_approver"},
		inside:   map[string]Section{"required_output_contract": inContract, "budget_limit": inBudget, "policy_context": inPolicyContext},
	},
	inContract:      {controls: contractParts, nullable: contractParts},
	inBudget:        {controls: budgetParts, nullable: budgetParts},
	inPolicyContext: {controls: []string{"environment", "change_window"}},
	InManifest: {
		controls: []string{
			"role_types", "available_tools", "execution_mode", "trust_domain", "requires_human_approval", "budget_class",
			"locality", "max_context_size",
		},
		inside: map[string]Section{"requires_human_approval": inStandingApproval},
	},
	inStandingApproval: {controls: []string{"default", "for_task_types"}},
	InClutch:           {controls: []string{"security"}, inside: map[string]Section{"security": inSecurity}},
	inSecurity:         {controls: []string{"policy"}, inside: map[string]Section{"policy": inSecurityPolicy}},
	inSecurityPolicy:   {controls: []string{"sandbox", "tool_allowlist", "network"}},
}

// The parts of a control that may be null: the other parts still limit the task.
var (
	contractParts = []string{"format", "schema_ref", "must_include_fields"}
	budgetParts   = []string{"tokens", "usd_cents"}
)

// fewestLetters is the length of the shortest near miss. A name of more than shortName letters
// may differ by two edits, a shorter one by one.
const (
	fewestLetters = 5
	shortName     = 8
)

// mostNearMisses limits the reported near misses of one object.
const mostNearMisses = 20

// NearMisses returns probable controls that have no effect: unknown members of a section whose
// names are nearly those of its controls, and controls that are null although the contract does
// not allow null. Each is a refusal that names the field, below path; Mode.Apply turns it into
// what the operator's mode says. A text that is no JSON object has none.
func NearMisses(object []byte, path string, at Section) Findings {
	c := check{document: documents.Get().(*document)}
	defer c.release()
	if !c.parse(object) {
		return nil
	}
	found := c.nearMisses(0, at)
	for i, f := range found {
		found[i].Field = strings.TrimPrefix(path+"."+f.Field, ".")
	}
	return found
}

// nearMisses is NearMisses for an object of the document.
func (c *check) nearMisses(object int, at Section) (found Findings) {
	if c.kind(object) != '{' {
		return nil
	}
	section := sections[at]
	for name, value := range c.members(object) {
		if len(found) >= mostNearMisses {
			break
		}
		control := slices.IndexFunc(section.controls, func(control string) bool { return c.says(name, control) })
		if control < 0 {
			if meant := c.meant(name, section.controls); meant != "" {
				found = append(found, Finding{Kind: InvalidEnvelope, Field: c.path(value), Message: fmt.Sprintf("unknown field; did you mean %q?", meant)})
			}
			continue
		}
		known := section.controls[control]
		inside, deeper := section.inside[known]
		switch {
		case deeper && c.kind(value) == '{':
			found = append(found, c.nearMisses(value, inside)...)
		case c.kind(value) == 'n' && !slices.Contains(section.nullable, known):
			found = append(found, Finding{Kind: InvalidEnvelope, Field: c.path(value), Message: "must not be null; leave it out for no limit"})
		}
	}
	return found
}

// meant returns the control whose name a member nearly has, or "". A name that any dialect
// defines is no near miss.
func (c *check) meant(name int, controls []string) string {
	if defined[string(c.inner(name))] {
		return ""
	}
	text, _ := c.text(name)
	letters := folded(text)
	if defined[text] || len(letters) < fewestLetters {
		return ""
	}
	most := 1
	if len(letters) > shortName {
		most = 2
	}
	for _, control := range controls {
		if withinEdits(letters, folded(control), most) {
			return control
		}
	}
	return ""
}

// folded returns the letters of a name without its case and without _ and -.
func folded(name string) []rune {
	letters := make([]rune, 0, len(name))
	for _, r := range name {
		if r != '_' && r != '-' {
			letters = append(letters, unicode.ToLower(r))
		}
	}
	return letters
}

// withinEdits reports whether at most that many edits turn a into b. An edit inserts, removes
// or replaces a letter, or exchanges two neighbours: that is one slip of a typist, although it
// could count as two replacements.
func withinEdits(a, b []rune, most int) bool {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return false
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row[0] = i + 1
		for j := range b {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, replaced)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)] <= most
}

// Apply returns the findings of a control as its mode says: unchanged, as warnings, or none.
func (m Mode) Apply(found Findings) Findings {
	if m == Enforce {
		return found
	}
	var warnings Findings
	for _, f := range found {
		if f.Kind = ""; m == Warn {
			warnings = append(warnings, f)
		}
	}
	return warnings
}

// defined has the names of the members that any dialect defines, in any of its messages. None
// of them is a near miss, in any dialect.
var defined = func() map[string]bool {
	const ainl = `schema_version task_id requester_id target_agent target_role task_type description input refs payload
		kind uri required_output_contract format schema_ref must_include_fields sensitivity deadline budget_limit
		tokens usd_cents allowed_tools approval_required human_approver callback queue file_append policy_context
		environment change_window metadata agent_id status confidence output summary actions artifact_refs cost_used
		time_used started_at finished_at wall_ms needs_review required reason error message provenance_ref
		ainl_graph_checksum ainl_program_id runtime_version recording_uri name version role_types available_tools
		execution_mode trust_domain requires_human_approval default for_task_types budget_class locality
		max_context_size contact inbox_file policy_refs provenance owner created_at source_repo`
	const clowl = `clowl mid tid pid from cid body ctx inline hash auth det delegation_mode supports code retry note ainl`
	const cap = `type sender_id recipient_id timestamp content attachments context_summary error_code error_message
		inquiry expects_reply server_id tool result path url object text id system_prompt allowed_agents delegate_rules
		when_to_delegate overseer mcp_bindings scopes`
	const clutch = `thread_id run_id parent_task_id trace trace_id span_id role domain payload_type requires prefers
		security scheme kid sig policy sandbox tool_allowlist network ref mime_type idempotency_key attempt meta
		display desc endpoints capabilities tags tools servers inputs outputs trust_level cost_hint limits
		max_concurrency max_runtime_sec max_tokens max_cost constraints title progress success details retryable
		selected candidates scores findings citations sources relevance_scores files language tests_passed severity
		patch_ref decision comments blocking_issues framework ui_channel workflow step intent causation_id`
	names := map[string]bool{}
	for _, dialect := range []string{ainl, clowl, cap, clutch} {
		for _, name := range strings.Fields(dialect) {
			names[name] = true
		}
	}
	return names
}()
