package dialect

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

// limit reads the limits of a request: payload.constraints and security.policy of Clutch, and
// in meta.ainl those that only AINL has. AINL's own reader reads them, so that the same rules
// bind in both dialects.
func (r *clutchReading) limit() {
	m, c := &r.message, r.part
	ainl := r.ainl()
	budget := r.constraints(membersOf(ainl["budget_limit"]))
	if budget != nil {
		ainl["budget_limit"] = object(budget)
	}
	if c.SecurityPolicy.ToolAllowlist != nil {
		ainl["allowed_tools"] = namesValue(c.SecurityPolicy.ToolAllowlist)
	}
	t, findings := envelope.DecodeTask(r.asAINL(ainl), envelope.Strict)
	for _, f := range findings {
		f.Field = r.clutchField(f.Field)
		r.findings = append(r.findings, f)
	}
	t.NearMisses = append(envelope.NearMisses(m.Raw, "", envelope.InClutch), nearMissesOf(membersOf(c.Meta)["ainl"], "meta.ainl")...)
	was := m.Request
	t.Raw, t.Hash, t.ID, t.Agent, t.Requester, t.Type, t.Description, t.Role = was.Raw, was.Hash, was.ID, was.Agent, was.Requester, was.Type, was.Description, ""
	t.Clutch = c
	if ainl["target_role"] != nil {
		t.Role, _ = textOf(ainl["target_role"])
	}
	m.Request = t
}

// ainl returns the known members of meta.ainl.
func (r *clutchReading) ainl() map[string]jsontext.Value {
	known := map[string]jsontext.Value{}
	value := membersOf(r.part.Meta)["ainl"]
	if value == nil {
		return known
	}
	if value.Kind() != '{' {
		r.refuse("meta.ainl", "must be an object")
		return known
	}
	for name, value := range membersOf(value) {
		switch {
		case name == "metadata" && value.Kind() == '{':
			known[name] = r.metadata(value)
		case slices.Contains(limitNames, name) || slices.Contains(carried, name):
			known[name] = value
		default:
			r.note("", "meta.ainl."+name, "is not a field we know")
		}
	}
	return known
}

// metadata returns the metadata without the keys that only an AINL line may have.
func (r *clutchReading) metadata(value jsontext.Value) jsontext.Value {
	return withoutSenderKeys(value, func(key, message string) { r.note("", "meta.ainl."+key, message) })
}

// constraints reads payload.constraints, and returns the budget with its limits.
func (r *clutchReading) constraints(budget map[string]jsontext.Value) map[string]jsontext.Value {
	if r.payload.members == nil {
		return budget
	}
	limits := r.payload.within("constraints")
	if limits.members == nil {
		return budget
	}
	if budget == nil {
		budget = map[string]jsontext.Value{}
	}
	if value := limits.member("max_tokens"); value != nil {
		budget["tokens"] = value
	}
	if value := limits.member("max_cost"); value != nil {
		if cents, exact, ok := centsOf(value); !ok {
			limits.refuse("max_cost", "must be a number of dollars, 0 or more")
		} else {
			if !exact {
				limits.note("", "max_cost", "has a fraction of a cent, which is left out")
			}
			budget["usd_cents"] = strconv.AppendInt(nil, cents, 10)
		}
	}
	r.part.MaxRuntime = limits.runtime("max_runtime_sec")
	if len(budget) == 0 {
		return nil
	}
	return budget
}

// runtime reads the time limit of a run, in seconds.
func (f fields) runtime(name string) time.Duration {
	value := f.member(name)
	if value == nil {
		return 0
	}
	seconds, err := strconv.ParseFloat(string(value), 64)
	if value.Kind() != '0' || err != nil || seconds <= 0 || seconds > math.MaxInt64/float64(time.Second)/2 {
		f.refuse(name, "must be a number of seconds, more than 0")
		return 0
	}
	return max(time.Nanosecond, time.Duration(seconds*float64(time.Second)))
}

// centsOf returns dollars in whole cents, rounded down, and whether the amount was exact.
func centsOf(dollars jsontext.Value) (cents int64, exact, ok bool) {
	const longest = 40 // digits, so that an exponent cannot make it large
	if dollars.Kind() != '0' || len(dollars) > longest {
		return 0, false, false
	}
	if _, exponent, found := strings.Cut(strings.ToLower(string(dollars)), "e"); found && len(exponent) > 3 {
		return 0, false, false
	}
	amount, is := new(big.Rat).SetString(string(dollars))
	if !is || amount.Sign() < 0 {
		return 0, false, false
	}
	amount.Mul(amount, big.NewRat(100, 1))
	whole := new(big.Int).Quo(amount.Num(), amount.Denom())
	return whole.Int64(), amount.IsInt(), whole.IsInt64()
}

// asAINL writes the request as AINL would.
func (r *clutchReading) asAINL(ainl map[string]jsontext.Value) jsontext.Value {
	m := &r.message
	var w, input writer
	w.word("schema_version", envelope.SchemaVersion)
	w.word("task_id", string(m.Task))
	w.word("requester_id", m.From)
	w.word("target_agent", envelope.Everybody)
	w.add("target_role", or(ainl["target_role"], quoted("executor")))
	w.word("task_type", m.Type)
	w.add("description", quoted(""))
	input.add("payload", r.part.Payload)
	input.add("refs", or(ainl["refs"], attachedRefs(r.part.Attachments)))
	w.add("input", input.end())
	for _, name := range append([]string{"metadata"}, limitNames...) {
		w.add(name, ainl[name])
	}
	return w.end()
}

// attachedRefs returns the attachments with a reference or a URL, as references of AINL; nil
// for none.
func attachedRefs(list []envelope.ClutchAttachment) jsontext.Value {
	var refs []envelope.Ref
	for _, a := range list {
		switch {
		case a.Kind == "artifact_ref":
			refs = append(refs, envelope.Ref{Kind: "artifact_ref", URI: a.Ref})
		case a.Kind == "url" && strings.HasPrefix(a.URL, "file://"):
			refs = append(refs, envelope.Ref{Kind: "file", URI: a.URL})
		case a.Kind == "url":
			refs = append(refs, envelope.Ref{Kind: "url", URI: a.URL})
		}
	}
	return refsValue(refs)
}

// clutchField returns the name in the Clutch message of a field of AINL.
func (r *clutchReading) clutchField(field string) string {
	head, _, _ := strings.Cut(field, "[")
	rest := strings.TrimPrefix(field, "budget_limit.")
	switch {
	case head == "task_id", head == "task_type":
		return map[string]string{"task_id": "task_id", "task_type": "payload_type"}[head]
	case head == "requester_id":
		return "from.agent_id"
	case rest == "tokens" && r.payload.members["constraints"] != nil:
		return "payload.constraints.max_tokens"
	case head == "allowed_tools" && r.part.SecurityPolicy.ToolAllowlist != nil:
		return "security.policy.tool_allowlist" + strings.TrimPrefix(field, "allowed_tools")
	case strings.HasPrefix(field, "input.refs") && membersOf(membersOf(r.part.Meta)["ainl"])["refs"] == nil:
		return "attachments" + strings.TrimPrefix(field, "input.refs")
	}
	return "meta.ainl." + strings.TrimPrefix(field, "input.")
}
