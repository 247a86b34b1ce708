package api_test

import (
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/access/api"
	"mailboxd/internal/decisions/task"
)

func TestASearchDecodesEveryLineThatMayHaveItsWords(t *testing.T) {
	const line = `{"schema_version":"1.0","task_id":"t1","requester_id":"Ada","target_agent":"*","target_role":"worker","task_type":"Fix","description":"Prüfe die KASSE  im Büro","metadata":{"mbx.labels":{"area":"Auth"}},"input":{"refs":[],"payload":{"secret":"zebra"}}}`
	const escaped = `{"schema_version":"1.0","task_id":"t1","requester_id":"ada","target_agent":"*","target_role":"worker","task_type":"fix","description":"Pr\u00fcfe\ndie Kasse","input":{}}`
	const capLine = `{"type":"delegation_notice","task_id":"t1","sender_id":"ada","recipient_id":"x","context_summary":"Look","attachments":[]}`
	row := task.Task{ID: "t1", Agent: "chosen", Requester: "Ada", Type: "Fix", Dialect: envelope.AINL}
	for _, c := range []struct {
		dialect    envelope.Dialect
		line       string
		words      []string
		has, looks bool
	}{
		{"ainl", line, []string{"prüfe", "kasse"}, true, true},
		{"ainl", line, []string{"kasse im"}, true, true}, // two spaces stand between them in the line
		{"ainl", line, []string{"area=auth"}, true, true},
		{"ainl", line, []string{"auth", "area"}, true, true},
		{"ainl", line, []string{"chosen", "t1", "ada", "fix"}, true, true},
		{"ainl", line, []string{"zebra"}, false, true}, // it stands in the payload, which is not searched
		{"ainl", line, []string{"prüfe", "garten"}, false, false},
		{"ainl", escaped, []string{"prüfe", "kasse"}, true, true},
		{"ainl", escaped, []string{"garten"}, false, true},
		{"cap", capLine, []string{"look"}, true, true},
		{"cap", capLine, []string{"garten"}, false, true},
		{"ainl", "", []string{"chosen"}, true, true}, // the line is not kept any more
		{"ainl", "", []string{"kasse"}, false, false},
	} {
		row.Dialect = c.dialect
		if has, looks := api.Matches(row, []byte(c.line), c.words...); has != c.has || looks != c.looks {
			t.Errorf("%s %s, %q: has %v, is decoded %v; want %v, %v", c.dialect, c.line, c.words, has, looks, c.has, c.looks)
		}
	}
}
