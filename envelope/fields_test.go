package envelope_test

import (
	"fmt"
	"strings"
	"testing"

	"mailboxd/envelope"
)

// shapes are the rules of shape, one field at a time. Want is "" for no
// finding; a kind before the field is one other than invalid_envelope, and
// "warning" is none.
var shapes = []struct{ row, field, value, want string }{
	{"AINL-30", "schema_version", ``, "schema_version: required"},
	{"AINL-30", "schema_version", `null`, "schema_version: required"},
	{"row 24", "schema_version", `"2.0"`, `unsupported_version schema_version: is "2.0", only 1.x is supported`},
	{"row 24", "schema_version", `2`, `unsupported_version schema_version: is "2", only 1.x is supported`},
	{"row 24", "schema_version", `"0.9"`, `unsupported_version schema_version: is "0.9", only 1.x is supported`},
	{"row 24", "schema_version", `"1.9"`, `warning schema_version: is "1.9", newer than 1.0: what it adds is kept but not understood`},
	{"row 24, F2", "schema_version", `1.0`, `warning schema_version: should be the string "1.0"`},
	{"row 24, F2", "schema_version", `1`, `warning schema_version: should be the string "1.0"`},
	{"row 24", "schema_version", `1.5`, `schema_version: must be a string such as "1.0"`},
	{"row 24", "schema_version", `"1"`, `schema_version: must be a string such as "1.0"`},
	{"row 24", "schema_version", `"v1"`, `schema_version: must be a string such as "1.0"`},
	{"row 24", "schema_version", `"1.0.0-x"`, `schema_version: must be a string such as "1.0"`},
	{"row 24", "schema_version", `"01.0"`, `schema_version: must be a string such as "1.0"`},
	{"row 24", "schema_version", `["1.0"]`, `schema_version: must be a string such as "1.0"`},

	{"row 16", "task_id", `""`, "task_id: must not be empty"},
	{"row 16", "task_id", `"."`, "warning task_id: ends in a space or a dot, which is easily overlooked"},
	{"row 16", "task_id", `"t "`, "warning task_id: ends in a space or a dot, which is easily overlooked"},
	{"row 16", "task_id", `"-rf"`, ""},
	{"row 16", "task_id", `".hidden"`, ""},
	{"row 16", "task_id", `"a\\b"`, ""},
	{"row 16", "task_id", `"%2e%2e"`, ""},
	{"row 16", "task_id", `"CON"`, ""},
	{"row 15", "task_id", `"../x"`, `task_id: must not contain "/"`},
	{"row 15", "task_id", `"a/b"`, `task_id: must not contain "/"`},
	{"row 15", "task_id", `"a\u002fb"`, `task_id: must not contain "/"`},
	{"row 15", "task_id", `".."`, `task_id: must not contain ".."`},
	{"row 15", "task_id", `"a..b"`, `task_id: must not contain ".."`},
	{"row 17", "task_id", `"` + strings.Repeat("x", 250) + `"`, ""},
	{"row 17", "task_id", `"` + strings.Repeat("x", 251) + `"`, "task_id: is 251 bytes long, more than 250"},
	{"row 17", "task_id", `"` + strings.Repeat("é", 126) + `"`, "task_id: is 252 bytes long, more than 250"},
	{"row 18", "task_id", `"e\u0301"`, "task_id: is not in Unicode normal form C"},
	{"row 18", "task_id", `"a\u200bb"`, "task_id: contains a control or invisible character"},
	{"row 18", "task_id", `"a\u202eb"`, "task_id: contains a control or invisible character"},
	{"row 19", "task_id", `"a\u001b[2Jb"`, "task_id: contains a control or invisible character"},
	{"row 9", "task_id", `"a\u0000b"`, "task_id: contains a control or invisible character"},
	{"row 6", "task_id", `"a\ud800"`, "task_id: contains half of a surrogate pair"},
	{"row 6", "task_id", `"\ud83d\ude00"`, ""},
	{"row 20", "task_id", `20260309`, "warning task_id: should be a string"},
	{"row 20", "task_id", `123456789012345678901234567890`, "warning task_id: should be a string"},
	{"row 20", "task_id", `1.5`, "task_id: must be a string"},
	{"row 20", "task_id", `1e3`, "task_id: must be a string"},
	{"row 20", "task_id", `true`, "task_id: must be a string"},
	{"row 14", "task_id", `null`, "task_id: required"},

	{"AINL-32", "requester_id", ``, "requester_id: required"},
	{"AINL-33", "target_agent", ``, "target_agent: required"},
	{"AINL-33", "target_agent", `""`, `warning target_agent: is empty, read as "*": the agent is chosen by the task`},
	{"AINL-33", "target_agent", `" "`, ""},
	{"AINL-33", "target_agent", `"*"`, ""},
	{"AINL-33", "target_agent", `7`, "target_agent: must be a string"},
	{"row 6", "target_agent", `"a\udfff"`, "target_agent: contains half of a surrogate pair"},
	{"row 9", "requester_id", `"a\u0000"`, "requester_id: contains a control or invisible character"},
	{"AINL-34", "target_role", ``, "target_role: required"},
	{"AINL-35", "task_type", `null`, "task_type: required"},
	{"AINL-36", "description", `""`, ""},
	{"AINL-36", "description", `7`, "description: must be a string"},
	{"row 9", "description", `"a\u0000\u2028\ud800"`, ""},

	{"AINL-37", "input", ``, "input: required"},
	{"AINL-37", "input", `[]`, "input: must be an object"},
	{"AINL-38", "input", `{"payload":1,"refs":{}}`, "input.refs: must be a list"},
	{"AINL-38", "input", `{"payload":1,"refs":null}`, ""},
	{"AINL-38", "input", `{"payload":1,"refs":[7]}`, "input.refs[0]: must be an object"},
	{"AINL-38", "input", `{"payload":1,"refs":[{"kind":"a","uri":"b"},{"kind":"a","uri":7}]}`, "input.refs[1].uri: must be a string"},
	{"AINL-38", "input", `{"payload":1,"refs":[{"uri":"b"}]}`, "input.refs[0].kind: required"},
	{"row 6", "input", `{"payload":1,"refs":[{"kind":"a","uri":"\udc00"}]}`, "input.refs[0].uri: contains half of a surrogate pair"},
	{"AINL-39", "input", `{}`, "warning input.payload: is missing"},
	{"AINL-39", "input", `{"payload":"any type"}`, ""},

	{"AINL-41", "required_output_contract", `[]`, "required_output_contract: must be an object"},
	{"AINL-41", "required_output_contract", `{"format":"xml"}`, `required_output_contract.format: must be "json"`},
	{"AINL-43", "required_output_contract", `{"must_include_fields":["a",1]}`, "required_output_contract.must_include_fields[1]: must be a string"},
	{"AINL-43", "required_output_contract", `{"must_include_fields":"a"}`, "required_output_contract.must_include_fields: must be a list"},
	{"AINL-44", "sensitivity", `"secret"`, `warning sensitivity: is "secret", read as "restricted"`},
	{"AINL-44", "sensitivity", `3`, "sensitivity: must be a string"},

	{"row 25", "deadline", `"2020-01-01T00:00:00Z"`, ""}, // past, but that is not a matter of shape
	{"row 25", "deadline", `"9999-12-31T23:59:59Z"`, ""},
	{"row 25", "deadline", `"2016-12-31T23:59:60Z"`, ""},
	{"row 25", "deadline", `"2017-01-01T00:59:60+01:00"`, ""},
	{"row 25", "deadline", `"2016-12-31T12:00:60Z"`, `deadline: must be a time with a zone such as "2026-03-09T23:00:00Z", not "2016-12-31T12:00:60Z"`},
	{"row 25", "deadline", `"2026-03-09T23:00:00"`, `deadline: must be a time with a zone such as "2026-03-09T23:00:00Z", not "2026-03-09T23:00:00"`},
	{"row 25", "deadline", `"2026-03-09"`, `deadline: must be a time with a zone such as "2026-03-09T23:00:00Z", not "2026-03-09"`},
	{"row 25", "deadline", `"tomorrow"`, `deadline: must be a time with a zone such as "2026-03-09T23:00:00Z", not "tomorrow"`},
	{"row 19", "deadline", `"\u001b[2J"`, `deadline: must be a time with a zone such as "2026-03-09T23:00:00Z", not "\x1b[2J"`},
	{"row 25", "deadline", `1773014400`, "deadline: must be a string"},
	{"row 25", "deadline", `null`, ""},

	{"row 28", "budget_limit", `null`, ""},
	{"row 28", "budget_limit", `{"tokens":null}`, ""},
	{"row 28", "budget_limit", `{"tokens":0}`, ""},
	{"row 28", "budget_limit", `{"tokens":-1}`, "budget_limit.tokens: must be a whole number, 0 or more"},
	{"row 28", "budget_limit", `{"tokens":"3000"}`, "budget_limit.tokens: must be a whole number, 0 or more"},
	{"row 28", "budget_limit", `{"usd_cents":1e30}`, "budget_limit.usd_cents: must be a whole number, 0 or more"},
	{"row 28", "budget_limit", `{"usd_cents":3.0}`, "budget_limit.usd_cents: must be a whole number, 0 or more"},
	{"row 5", "budget_limit", `{"tokens":9223372036854775808}`, "budget_limit.tokens: must be a whole number, 0 or more"},
	{"row 28", "budget_limit", `3000`, "budget_limit: must be an object"},
	{"row 28", "budget_limit", `{"dollars":1}`, "warning budget_limit.dollars: is not a limit we know"},

	{"AINL-47", "allowed_tools", `"http"`, "allowed_tools: must be a list"},
	{"AINL-47", "allowed_tools", `["http",1]`, "allowed_tools[1]: must be a string"},
	{"AINL-47", "allowed_tools", `["a,b"]`, "allowed_tools: must not hold a name with a comma"},
	{"row 9", "allowed_tools", `["a\u0000"]`, "allowed_tools[0]: contains a control or invisible character"},
	{"row 27", "approval_required", `"NONE"`, `approval_required: must be "none", "pre", "post" or "both"`},
	{"row 27", "approval_required", `"maybe"`, `approval_required: must be "none", "pre", "post" or "both"`},
	{"row 27", "approval_required", `""`, `approval_required: must be "none", "pre", "post" or "both"`},
	{"row 27", "approval_required", `0`, `approval_required: must be "none", "pre", "post" or "both"`},
	{"row 27", "approval_required", `true`, `warning approval_required: is true, read as "pre"`},
	{"F6", "approval_required", `false`, ""},
	{"AINL-49", "human_approver", `""`, "human_approver: must not be empty"},
	{"AINL-49", "human_approver", `null`, ""},

	{"F6", "callback", `null`, ""},
	{"AINL-50", "callback", `"q"`, "callback: must be an object"},
	{"AINL-50", "callback", `{"queue":7}`, "callback.queue: must be a string"},
	{"AINL-50", "callback", `{"queue":"a b"}`, "callback.queue: must be 1 to 64 of the characters A-Z a-z 0-9 . _ -"},
	{"AINL-50", "callback", `{"queue":"../tasks/x"}`, "security_violation callback.queue: must be a name, not a path"},
	{"row 29", "callback", `{"file_append":"` + strings.Repeat("aaa/", 255) + `aaaa"}`, ""},
	{"row 29", "callback", `{"file_append":"` + strings.Repeat("aaa/", 255) + `aaaaa"}`, "callback.file_append: is longer than a file name can be"},
	{"row 29", "callback", `{"file_append":"` + strings.Repeat("a", 255) + `"}`, ""},
	{"row 29", "callback", `{"file_append":"` + strings.Repeat("a", 256) + `"}`, "callback.file_append: is longer than a file name can be"},
	{"row 29", "callback", `{"file_append":"../../x"}`, "security_violation callback.file_append: must stay below the root"},
	{"row 29", "callback", `{"file_append":"/etc/x"}`, "security_violation callback.file_append: must stay below the root"},
	{"row 29", "callback", `{"file_append":"a/../../x"}`, "security_violation callback.file_append: must stay below the root"},
	{"row 29", "callback", `{"file_append":"."}`, "security_violation callback.file_append: must stay below the root"},
	{"row 29", "callback", `{"file_append":"./"}`, "security_violation callback.file_append: must stay below the root"},
	{"row 29", "callback", `{"file_append":"tasks/openclaw_agent_tasks.jsonl"}`, "security_violation callback.file_append: must not be in tasks/, which only the mailbox writes"},
	{"row 29", "callback", `{"file_append":"Tasks/x.jsonl"}`, "security_violation callback.file_append: must not be in Tasks/, which only the mailbox writes"},
	{"row 29", "callback", `{"file_append":"results/other.json"}`, "security_violation callback.file_append: must not be in results/, which only the mailbox writes"},
	{"row 29", "callback", `{"file_append":"rejected/x"}`, "security_violation callback.file_append: must not be in rejected/, which only the mailbox writes"},
	{"row 29", "callback", `{"file_append":".mailboxd/tmp/x"}`, "security_violation callback.file_append: must not be in .mailboxd/, which only the mailbox writes"},
	{"AINL-51", "callback", `{"file_append":"a//b"}`, `callback.file_append: must be a plain path such as "agents/a/results.jsonl"`},
	{"AINL-51", "callback", `{"file_append":"a/"}`, `callback.file_append: must be a plain path such as "agents/a/results.jsonl"`},
	{"AINL-51", "callback", `{"file_append":"agents/bob/inbox.jsonl"}`, "security_violation callback.file_append: must not be the inbox of a participant, which only mailboxd writes"},
	{"AINL-51", "callback", `{"file_append":"Agents/h-0/INBOX.jsonl"}`, "security_violation callback.file_append: must not be the inbox of a participant, which only mailboxd writes"},
	{"AINL-51", "callback", `{"file_append":"./agents/bob/inbox.jsonl"}`, "callback.file_append: must be a plain path such as \"agents/a/results.jsonl\""},
	{"AINL-51", "callback", `{"file_append":"agents/a/../bob/inbox.jsonl"}`, "security_violation callback.file_append: must stay below the root"},
	{"AINL-51", "callback", `{"file_append":7}`, "callback.file_append: must be a string"},
	{"row 9", "callback", `{"file_append":"a\u0000"}`, "callback.file_append: contains a control or invisible character"},
	{"row 6", "callback", `{"file_append":"a\ud800"}`, "callback.file_append: contains half of a surrogate pair"},
	{"AINL-51", "callback", `{"file_append":"` + strings.Repeat("x", 256) + `"}`, "callback.file_append: is longer than a file name can be"},

	{"AINL-52", "policy_context", `"staging"`, "policy_context: must be an object"},
	{"AINL-52", "policy_context", `{"environment":7}`, "policy_context.environment: must be a string"},
	{"row 26", "policy_context", `{"change_window":7}`, "policy_context.change_window: must be an interval or a list of intervals"},
	{"row 26", "policy_context", `{"change_window":[]}`, "policy_context.change_window: must not be empty"},
	{"row 26", "policy_context", `{"change_window":"2026-03-10T02:00:00Z/2026-03-10T01:00:00Z"}`, "policy_context.change_window: must end after it starts"},
	{"row 26", "policy_context", `{"change_window":"2026-03-10T01:00:00Z/2026-03-10T01:00:00Z"}`, "policy_context.change_window: must end after it starts"},
	{"row 26", "policy_context", `{"change_window":"2026-03-10T01:00:00Z/"}`, `policy_context.change_window: must end at a time with a zone or after a duration such as PT1H, not ""`},
	{"row 26", "policy_context", `{"change_window":"2026-03-10T01:00:00Z/P1M"}`, `policy_context.change_window: must end at a time with a zone or after a duration such as PT1H, not "P1M"`},
	{"row 26", "policy_context", `{"change_window":"2026-03-10T01:00:00Z/PT"}`, `policy_context.change_window: must end at a time with a zone or after a duration such as PT1H, not "PT"`},
	{"row 26", "policy_context", `{"change_window":"/2026-03-10T01:00:00Z"}`, `policy_context.change_window: must start at a time with a zone, not ""`},
	{"row 26", "policy_context", `{"change_window":"2026-03-10T01:00:00/2026-03-10T02:00:00"}`, `policy_context.change_window: must start at a time with a zone, not "2026-03-10T01:00:00"`},
	{"row 26", "policy_context", `{"change_window":["2026-03-10T01:00:00Z/PT1H","soon"]}`, `policy_context.change_window[1]: must be start/end or start/duration, not "soon"`},

	{"AINL-53", "metadata", `[]`, "metadata: must be an object"},
	{"row 23", "metadata", `{"mbx.run_id":"t0"}`, `warning metadata["mbx.run_id"]: only mailboxd sets it: left out`},
	{"row 23", "metadata", `{"mbx.parent_task_id":["t0"]}`, `warning metadata["mbx.parent_task_id"]: only mailboxd sets it: left out`},
	{"AINL-01", "metadata", `{"mbx.parent_task_id":"t0"}`, ""},
	{"AINL-01", "metadata", `{"mbx.thread_id":"c0"}`, ""},
	{"row 23", "metadata", `{"mbx.thread_id":7}`, `warning metadata["mbx.thread_id"]: only mailboxd sets it: left out`},
	{"row 23", "metadata", `{"mbx.labels":{"area":"auth","x-1_.":""},"mbx.workdir":"/home/me/src app","mbx.worktree":true}`, ""},
	{"row 23", "metadata", `{"mbx.labels":null,"mbx.workdir":null,"mbx.worktree":null}`, ""},
	{"row 23", "metadata", `{"mbx.labels":["a"]}`, `metadata["mbx.labels"]: must be an object`},
	{"row 23", "metadata", `{"mbx.labels":{"a":7}}`, `metadata["mbx.labels"].a: must be a string`},
	{"row 23", "metadata", `{"mbx.labels":{"Area":"x"}}`, `metadata["mbx.labels"].Area: the key must be 1 to 40 of the characters a-z, 0-9, '.', '_' and '-'`},
	{"row 23", "metadata", `{"mbx.labels":{"":"x"}}`, `metadata["mbx.labels"][""]: the key must be 1 to 40 of the characters a-z, 0-9, '.', '_' and '-'`},
	{"row 19", "metadata", `{"mbx.labels":{"a":"\u001b[2J"}}`, `metadata["mbx.labels"].a: contains a control or invisible character`},
	{"row 6", "metadata", `{"mbx.labels":{"a":"\ud800"}}`, `metadata["mbx.labels"].a: contains half of a surrogate pair`},
	{"row 23", "metadata", `{"mbx.labels":{"a":"` + strings.Repeat("é", 100) + `"}}`, ""},
	{"row 23", "metadata", `{"mbx.labels":{"a":"` + strings.Repeat("é", 101) + `"}}`, `metadata["mbx.labels"].a: is longer than 100 characters`},
	{"row 23", "metadata", `{"mbx.labels":` + manyLabels(16) + `}`, ""},
	{"row 23", "metadata", `{"mbx.labels":` + manyLabels(17) + `}`, `metadata["mbx.labels"]: has more than 16 labels`},
	{"row 23", "metadata", `{"mbx.workdir":"src"}`, `metadata["mbx.workdir"]: must be an absolute path`},
	{"row 23", "metadata", `{"mbx.workdir":"~/src"}`, `metadata["mbx.workdir"]: must be an absolute path`},
	{"row 23", "metadata", `{"mbx.workdir":""}`, `metadata["mbx.workdir"]: must not be empty`},
	{"row 23", "metadata", `{"mbx.workdir":7}`, `metadata["mbx.workdir"]: must be a string`},
	{"row 9", "metadata", `{"mbx.workdir":"/a\u0000b"}`, `metadata["mbx.workdir"]: contains a control or invisible character`},
	{"row 23", "metadata", `{"mbx.workdir":"/` + strings.Repeat("x", 4095) + `"}`, `metadata["mbx.workdir"]: is longer than 4095 bytes`},
	{"row 23", "metadata", `{"mbx.edit":"yes"}`, `metadata["mbx.edit"]: must be true or false`},
	{"row 23", "metadata", `{"mbx.worktree":"yes"}`, `metadata["mbx.worktree"]: must be true or false`},
	{"row 23", "__proto__", `{"a":1}`, ""},
	{"row 3", "TASK_ID", `"other"`, ""},
	{"row 3", "taſk_id", `"other"`, ""},
	{"row 2", "metadata", `{"a":{"b":1,"b":2}}`, "metadata.a.b: appears more than once"},
	{"row 2", "metadata", `{"a":1,"\u0061":2}`, "metadata.a: appears more than once"},
	{"row 50", "status", `"ok"`, ""},
}

func TestFindingsNameTheField(t *testing.T) {
	for _, c := range shapes {
		_, findings := decode(t, request(c.field, c.value))
		if got := short(findings); got != c.want {
			t.Errorf("%s: %s = %.80s:\n got %s\nwant %s", c.row, c.field, c.value, got, c.want)
		}
	}
}

// manyLabels returns an object with n labels.
func manyLabels(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"k%d":"v"`, i))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// short writes findings as the table above does.
func short(findings envelope.Findings) string {
	var words []string
	for _, f := range findings {
		switch {
		case f.Warning():
			words = append(words, "warning "+f.String())
		case f.Kind == envelope.InvalidEnvelope:
			words = append(words, f.String())
		default:
			words = append(words, string(f.Kind)+" "+f.String())
		}
	}
	return strings.Join(words, "; ")
}
