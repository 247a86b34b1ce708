package brokered

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/running/broker"
)

func TestACallThatWasSentGetsAnEventOnceWhenItsBrokerIsGone(t *testing.T) {
	dir := recordOf(t, `{"sent":{"id":"a","tool":"s/x"}}
{"sent":{"id":"b","tool":"s/y"}}
{"called":{"id":"a","tool":"s/x","result":"1"}}
{"se`, nil)
	if err := os.WriteFile(filepath.Join(dir, broker.AnswersFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var got []task.ToolUse
	job := task.Job{Dir: dir, Used: func(_ task.Kind, use task.ToolUse) error { got = append(got, use); return nil }}
	for range 2 { // the second daemon reads the same record
		r := NewReader(job)
		r.Poll()
		r.Finish()
	}
	if len(got) != 2 || got[0].ID != "a" || got[1].ID != "b" || !got[1].Failed || got[1].Why == "" {
		t.Errorf("the events are %+v; want one of a, and one of b that failed", got)
	}
}

func TestACallWhoseBrokerRecordsItsAnswerWhileItDiesHasOneEvent(t *testing.T) {
	dir := recordOf(t, `{"sent":{"id":"a","tool":"s/x"}}
{"called":{"id":"a","tool":"s/x","failed":true,"why":"the tool broker ended"}}
{"called":{"id":"a","tool":"s/x","failed":true,"why":"the server did not answer"}}
{"called":{"tool":"s/y"}}
{"called":{"tool":"s/y"}}
`, nil)
	if err := os.WriteFile(filepath.Join(dir, broker.AnswersFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	r := NewReader(task.Job{Dir: dir, Used: func(_ task.Kind, use task.ToolUse) error { got = append(got, use.ID+use.Tool); return nil }})
	r.Poll()
	if strings.Join(got, " ") != "as/x s/y s/y" {
		t.Errorf("the events are %q; want one of a, and one of each call without an id", got)
	}
}

func TestACallThatACallerMakesIsNotTakenForOneWithoutAnAnswer(t *testing.T) {
	dir := recordOf(t, `{"sent":{"id":"a","tool":"s/x"}}`+"\n", nil)
	err := os.WriteFile(filepath.Join(dir, broker.AnswersFile), nil, 0o600)
	if err = errors.Join(err, os.Mkdir(filepath.Join(dir, askedDir), 0o700)); err != nil {
		t.Fatal(err)
	}
	NewReader(task.Job{Dir: dir, Used: func(_ task.Kind, use task.ToolUse) error {
		t.Errorf("there is an event of the call %s, whose broker works", use.ID)
		return nil
	}}).Finish()
	if text, err := readFrom(dir, broker.CallsFile, 0); err != nil || strings.Contains(string(text), "called") {
		t.Errorf("the record is %s, %v; want it unchanged", text, err)
	}
}
