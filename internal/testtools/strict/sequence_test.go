package strict_test

import (
	"strings"
	"testing"

	"mailboxd/internal/testtools/strict"
)

// What ann sent: two requests, the second in two versions, a question about the
// first, and what is to stop the second.
var annSent = []string{
	`{"clowl":"0.2","mid":"m1","p":"REQ","from":"ann"}`,
	`{"clowl":"0.2","mid":"m2","p":"REQ","from":"ann"}`,
	`{"clowl":"0.2","mid":"m2","p":"REQ","from":"ann","body":{"t":"other"}}`,
	`{"clowl":"0.2","mid":"q1","pid":"m1","p":"QRY","from":"ann"}`,
	`{"clowl":"0.2","mid":"n1","pid":"m2","p":"CNCL","from":"ann"}`,
	`{"clowl":"0.2","mid":"b1","p":"REQ","from":"bob"}`,
	`{"clowl":"0.2","p":"REQ","from":"ann",`,
	`{"type":"delegation_notice","task_id":"T1","sender_id":"ann","recipient_id":"desk"}`,
	`{"type":"message","task_id":"T2","sender_id":"ann","recipient_id":"desk"}`,
}

// The lines of ann's inbox.
const (
	ack      = `{"mid":"a1","pid":"m1","p":"ACK"}`
	ack2     = `{"mid":"a2","pid":"m1","p":"ACK"}`
	prog     = `{"mid":"a3","pid":"m1","p":"PROG"}`
	prog2    = `{"mid":"a4","pid":"m1","p":"PROG"}`
	done     = `{"mid":"a5","pid":"m1","p":"DONE"}`
	done2    = `{"mid":"a6","pid":"m1","p":"DONE"}`
	final    = `{"mid":"a7","pid":"m1","p":"ERR","body":{"d":{"code":"E012","retry":false}}}`
	failed   = `{"mid":"a8","pid":"m1","p":"ERR","body":{"d":{"code":"E009","retry":true}}}`
	status   = `{"mid":"a9","pid":"q1","p":"INF","body":{"t":"status"}}`
	status2  = `{"mid":"a10","pid":"q1","p":"INF","body":{"t":"status"}}`
	taken    = `{"mid":"a11","pid":"m2","p":"ERR","body":{"d":{"code":"E011","retry":true}}}`
	taken2   = `{"mid":"a12","pid":"m2","p":"ERR","body":{"d":{"code":"E011","retry":true}}}`
	ackOf2   = `{"mid":"a13","pid":"m2","p":"ACK"}`
	doneOf2  = `{"mid":"a14","pid":"m2","p":"DONE"}`
	stopped  = `{"mid":"a15","pid":"n1","p":"ACK","body":{"d":{"status":"cancelled"}}}`
	stopped2 = `{"mid":"a16","pid":"n1","p":"ACK","body":{"d":{"status":"cancelled"}}}`
	tooLate  = `{"mid":"a17","pid":"n1","p":"ERR","body":{"d":{"code":"E011"}}}`
	garbled  = `{"mid":"a18","p":"ERR","body":{"d":{"code":"E001"}}}`
	garbled2 = `{"mid":"a19","p":"ERR","body":{"d":{"code":"E001"}}}`
	asked    = `{"mid":"r1","p":"REQ"}`
	asked2   = `{"mid":"r1","p":"REQ","body":{"t":"other"}}`
	stop     = `{"mid":"s1","pid":"r1","p":"CNCL"}`
	stop2    = `{"mid":"s2","pid":"r1","p":"CNCL"}`
	refused1 = `{"mid":"a20","pid":"m2","p":"ERR","body":{"d":{"code":"E002","retry":false}}}`
	failure  = `{"type":"error_response","task_id":"T1","sender_id":"desk","error_code":504}`
	failure2 = `{"type":"error_response","task_id":"T1","sender_id":"desk","error_code":500}`
	answer   = `{"type":"message","task_id":"T1","sender_id":"desk","content":"done"}`
	notice   = `{"type":"delegation_notice","task_id":"T9","sender_id":"user"}`
	notice2  = `{"type":"delegation_notice","task_id":"T9","sender_id":"user","context_summary":"other"}`
	abort    = `{"type":"error_response","task_id":"T9","sender_id":"user","error_code":499}`
	abort2   = `{"type":"error_response","task_id":"T9","sender_id":"user","error_code":499,"error_message":"again"}`
	refused  = `{"type":"error_response","task_id":"T2","sender_id":"mailboxd","error_code":401}`
	refused2 = `{"type":"error_response","task_id":"T2","sender_id":"mailboxd","error_code":400}`
	strange  = `{"type":"error_response","task_id":"T7","sender_id":"mailboxd","error_code":401}`
)

func sequence(inbox ...string) error {
	var sent, lines [][]byte
	for _, line := range annSent {
		sent = append(sent, []byte(line))
	}
	for _, line := range inbox {
		lines = append(lines, []byte(line))
	}
	return strict.Sequence("ann", sent, lines)
}

func TestSequencesOfTheProtocolsPass(t *testing.T) {
	for _, inbox := range [][]string{
		{ack, prog, prog2, done},
		{ack, done, ack, done}, // a crash wrote the lines again
		{final},
		{failed, ack, prog, done}, // another attempt
		{ack, failed, ack2, done2},
		{ack, status, done},
		{ackOf2, taken, doneOf2},
		{taken, ackOf2, stopped},
		{refused1, ackOf2, doneOf2}, // the first version was refused
		{ackOf2, doneOf2, refused1},
		{ackOf2, doneOf2, tooLate},
		{garbled},
		{asked, stop},
		{answer, failure},
		{failure, answer, failure2}, // another attempt
		{notice, abort},
		{notice, refused, answer},
	} {
		if err := sequence(inbox...); err != nil {
			t.Errorf("%s\n%v", strings.Join(inbox, "\n"), err)
		}
	}
}

func TestAPlantedFaultInASequenceIsFound(t *testing.T) {
	for want, inbox := range map[string][]string{
		"a DONE after the end":           {ack, done, done2},
		"an ERR after DONE":              {ack, done, final},
		"a DONE after ERR":               {ack, failed, done},
		"a PROG after the end":           {ack, done, prog},
		"a PROG before ACK":              {prog, ack},
		"an ACK twice":                   {ack, ack2},
		"an ACK after PROG":              {ack, prog, ack2},
		"an ACK after the end":           {ack, final, ack2},
		"an answer without a request":    {`{"mid":"x","pid":"m9","p":"DONE"}`},
		"an answer to another's request": {`{"mid":"x","pid":"b1","p":"ACK"}`},
		"an answer to nothing":           {`{"mid":"x","p":"DONE"}`},
		"two errors about one bad line":  {garbled, garbled2},
		"an answer after CNCL":           {ackOf2, stopped, doneOf2},
		"two answers to a CNCL":          {ackOf2, stopped, stopped2},
		"ERR and ACK of a CNCL":          {tooLate, stopped},
		"two conflicts and an end":       {taken, ackOf2, doneOf2, taken2},
		"three answers to two messages":  {refused1, ackOf2, doneOf2, taken},
		"two answers to a QRY":           {status, status2},
		"a mid twice":                    {asked, asked2},
		"a CNCL of nothing":              {stop},
		"two CNCLs":                      {asked, stop, stop2},
		"two error_responses":            {failure, failure2},
		"two delegations of one task":    {notice, notice2},
		"two cancellations":              {notice, abort, abort2},
		"an error about nothing":         {garbled, strange},
		"two errors about one message":   {garbled, refused, refused2},
	} {
		if sequence(inbox...) == nil {
			t.Errorf("%s passes:\n%s", want, strings.Join(inbox, "\n"))
		}
	}
}
