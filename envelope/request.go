package envelope

import "slices"

// legacyClutch are the types of Clutch's messages before v0, which had no mark.
var legacyClutch = []string{"PLAN", "PROPOSAL", "EXEC_REPORT", "REVIEW", "BLOCKER"}

// A Reading is how strictly a request is read. The zero value is Strict.
type Reading int

// The readings.
const (
	Strict Reading = iota // all fields that the contract requires must be there
	Legacy                // an envelope without schema_version is accepted, and such an envelope also without target_role (F6)
)

// DecodeTask reads exactly one AgentTaskRequest; white space around it is not part of it. When
// the findings refuse it, the Task still has Raw, Hash and every field that could be read and
// is safe to use, so that its sender gets an answer; its ID is "" if no safe id could be read.
// The Task keeps the given slice and points into it.
func DecodeTask(raw []byte, how Reading) (Task, Findings) {
	c := check{document: documents.Get().(*document)}
	defer c.release()
	r := request{check: &c, how: how, task: Task{Raw: trim(raw)}}
	r.read()
	return r.task, r.findings
}

// A request is a Task being read.
type request struct {
	*check
	how  Reading
	task Task
}

func (r *request) read() {
	t := &r.task
	if !r.parse(t.Raw) {
		t.Hash = hash(t.Raw)
		r.salvage()
		return
	}
	t.Hash = r.contentHash()
	if r.repeated() {
		r.salvage()
		return
	}
	if r.misplaced() {
		return
	}
	r.parties()
	t.Description = r.prose(r.required(0, "description"))
	r.input(r.required(0, "input"))
	r.contract(r.member(0, "required_output_contract"))
	r.limits()
	r.callback(r.member(0, "callback"))
	r.policy(r.member(0, "policy_context"))
	r.metadata(r.member(0, "metadata"))
	t.NearMisses = r.nearMisses(0, InRequest)
}

// salvage reads the members of a broken envelope that an answer needs.
func (r *request) salvage() {
	r.task.ID = Salvage(r.task.Raw)
	if agent := ScrapString(r.task.Raw, "target_agent"); visible(agent) {
		r.task.Agent = agent
	}
}

// parties reads the members that name the task, its requester and its agent (AINL-30 to
// AINL-35).
func (r *request) parties() {
	t := &r.task
	version := r.member(0, "schema_version")
	legacy := version == none && r.how == Legacy
	switch {
	case legacy:
		r.note("", "schema_version", `is missing, read as "1.0"`)
	case version == none:
		if slices.Contains(legacyClutch, r.word(0, "type")) && r.has("payload") {
			r.note(InvalidEnvelope, "v", "required: it looks like a Clutch message of the legacy type "+quote(r.word(0, "type")))
		}
		r.missing(0, "schema_version")
	default:
		r.version(version)
	}
	t.ID = r.id(r.required(0, "task_id"))
	t.Requester = r.name(r.required(0, "requester_id"))
	t.Agent = r.agent(r.required(0, "target_agent"))
	if role := r.member(0, "target_role"); role == none && legacy {
		r.note("", "target_role", "is missing")
	} else {
		t.Role = r.name(r.required(0, "target_role"))
	}
	t.Type = r.name(r.required(0, "task_type"))
}

// agent reads target_agent. An empty one leaves the choice to mailboxd, as "*" does (AINL-33).
func (r *request) agent(at int) string {
	if at != none && r.says(at, "") && r.kind(at) == '"' {
		r.warn(at, `is empty, read as "*": the agent is chosen by the task`)
		return Everybody
	}
	return r.name(at)
}

// id reads a task_id (AINL-31). An AINL program writes an id of digits as an integer (F2); its
// digits are the id, however many.
func (c *check) id(at int) ID {
	if at == none {
		return ""
	}
	var text string
	ok := true
	switch {
	case c.kind(at) == '"':
		text, ok = c.text(at)
	case c.kind(at) == '0' && integer(string(c.value(at))):
		text = string(c.value(at))
		c.tolerate(at, "should be a string")
	default:
		c.refuse(at, "must be a string")
		return ""
	}
	id, err := ParseID(text)
	switch {
	case !ok:
		c.refuse(at, "contains half of a surrogate pair")
		return ""
	case err != nil:
		c.refuse(at, err.Error())
		return ""
	}
	if last := text[len(text)-1]; last == ' ' || last == '.' {
		c.warn(at, "ends in a space or a dot, which is easily overlooked")
	}
	return id
}

// input reads the material (AINL-37 to AINL-40). It does not check whether a reference may be
// opened.
func (r *request) input(at int) {
	if !r.is(at, '{') {
		return
	}
	t := &r.task
	t.Input = r.value(at)
	if payload := r.find(at, "payload"); payload != none {
		t.Payload = r.value(payload)
	} else {
		r.note("", "input.payload", "is missing")
	}
	refs := r.member(at, "refs")
	if !r.is(refs, '[') {
		return
	}
	for _, item := range r.items(refs) {
		if r.is(item, '{') {
			t.Refs = append(t.Refs, Ref{
				Kind: r.name(r.required(item, "kind")),
				URI:  r.name(r.required(item, "uri")),
			})
		}
	}
}

// contract reads the required form of the answer (AINL-41 to AINL-43).
func (r *request) contract(at int) {
	if !r.is(at, '{') {
		return
	}
	var contract OutputContract
	if format := r.member(at, "format"); r.is(format, '"') {
		contract.Format = r.prose(format)
		if contract.Format != "json" {
			r.refuse(format, `must be "json"`)
		}
	}
	if ref := r.member(at, "schema_ref"); ref != none {
		contract.SchemaRef = r.name(ref)
	}
	contract.MustInclude = r.names(r.member(at, "must_include_fields"))
	r.task.Contract = &contract
}
