package dialect_test

import (
	"strings"
	"testing"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
)

func TestARequestIsRetoldInAnotherDialect(t *testing.T) {
	lines := map[envelope.Dialect]string{
		envelope.AINL: `{"schema_version":"1.0","task_id":"t1","requester_id":"a","target_agent":"b","target_role":"executor","task_type":"x","description":"Do it.","input":{"payload":{"n":1}}}`,
		envelope.CLowl: `{"clowl":"0.2","mid":"t1","ts":1709078400,"p":"REQ","from":"a","to":"b","cid":"c","body":{"t":"x","d":{"n":1,"description":"Do it.",` +
			`"ainl":{"target_role":"executor"}}}}`,
		envelope.CAP: `{"type":"delegation_notice","task_id":"t1","sender_id":"a","recipient_id":"b","context_summary":"Do it.","attachments":[]}`,
	}
	for from, line := range lines {
		task, findings := dialect.DecodeTask(from, []byte(line), envelope.Strict)
		if findings.Refused() {
			t.Fatalf("%s: %v", line, findings)
		}
		for to := range lines {
			said := dialect.Translate(task, to)
			if from == to && string(said) != line {
				t.Errorf("%s is said again as %s", line, said)
			}
			again, findings := dialect.DecodeTask(to, said, envelope.Strict)
			if findings.Refused() || again.ID != "t1" || again.Requester != "a" || again.Agent != "b" || !strings.Contains(again.Description, "Do it.") {
				t.Errorf("%s in %s is %s: %v", line, to, said, findings)
			}
		}
	}
}
