package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/decisions/task"
)

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestWorkAndOutcomeArriveAsTheyWere(t *testing.T) {
	line := []byte(`{"schema_version":"1","task_id":"t1","requester_id":"me","target_agent":"a","target_role":"r","task_type":"x",` +
		`"description":"d","input":{"refs":[{"kind":"file","uri":"a"}],"payload":{"n":1.0}},"allowed_tools":[],"metadata":{"k":[1]}}`)
	of, _ := dialect.DecodeTask(envelope.AINL, line, envelope.Strict)
	if of.ID != "t1" || of.AllowedTools == nil {
		t.Fatalf("decoded task is %+v", of)
	}
	dollars := int64(7)
	work := fleet.Work{
		Request: line, Task: of, Revision: 1, Attempt: 2, RunID: "r", Allowance: envelope.Budget{USDCents: &dollars},
		Terms:        task.Terms{Timeout: time.Minute, Tools: []string{}, Calls: &task.CallRules{Otherwise: task.AskPerson, Timeout: 3}},
		Conversation: []envelope.Message{{Raw: []byte("x"), Text: "hello", To: []string{"a"}, Time: time.Unix(5, 0).UTC()}},
	}
	arrives(t, work)
	sure := 0.5
	arrives(t, fleet.Outcome{
		Result: envelope.Result{
			TaskID: "t1", Status: envelope.OK, Confidence: &sure, Cost: &envelope.Cost{Tokens: 3, Unpriced: true},
			Output: envelope.Output{Summary: "s", Extra: jsontext.Value(`{"a":1}`), Enforcement: envelope.Levels{envelope.ControlFilesystem: "os"}},
		},
		Exit:       task.Exit{Code: 3, Wall: time.Second, Started: time.Unix(9, 0).UTC(), Survivors: []task.Survivor{{PID: 4, Command: "c"}}},
		Unanswered: envelope.Result{TaskID: "t1", Error: envelope.Error{Kind: envelope.Cancelled}},
		Messages:   []envelope.Message{{Text: "m", Request: of}}, HoldUntil: time.Unix(8, 0).UTC(),
	})
}

func arrives[T any](t *testing.T, sent T) {
	t.Helper()
	text, err := fleet.EncodeLarge(sent)
	if err != nil {
		t.Fatal(err)
	}
	var got T
	if err := fleet.DecodeLarge(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Errorf("%T changed on its way:\n%s", sent, diff)
	}
}

func TestATokenNamesItsAttempt(t *testing.T) {
	token := fleet.NewToken(3, 41, 2, 1, "abc")
	seq, revision, attempt := token.Task()
	if token.Check() != nil || token.Epoch() != 3 || seq != 41 || revision != 2 || attempt != 1 {
		t.Errorf("token %s: epoch %d, task %d, revision %d, attempt %d: %v", token, token.Epoch(), seq, revision, attempt, token.Check())
	}
}

func TestHostileMessagesAreRefused(t *testing.T) {
	report := `"protocol":1,"runner":"a","incarnation":"i","session":"s","number":1`
	object := func(kind, name, key string) string {
		return `{"kind":"` + kind + `","name":"` + name + `","key":"` + key + `","size":1,"sha256":"` + digest + `"}`
	}
	done := func(objects string) string {
		return `{` + report + `,"token":"1-1-1-1-x","outcome":{},"objects":[` + objects + `]}`
	}
	for name, c := range map[string]struct {
		text string
		into interface{ Check() error }
	}{
		"a name with a dot":   {`{"protocol":1,"runner":"a.b","incarnation":"i","session":"s","number":1}`, &fleet.Beat{}},
		"a name of many":      {`{"protocol":1,"runner":"*","incarnation":"i","session":"s","number":1}`, &fleet.Beat{}},
		"a token with a path": {`{` + report + `,"runs":[{"token":"1-1-1-1-../x","state":"began"}]}`, &fleet.Beat{}},
		"an unknown state":    {`{` + report + `,"runs":[{"token":"1-1-1-1-x","state":"done"}]}`, &fleet.Beat{}},
		"a token twice": {`{` + report + `,"runs":[{"token":"1-1-1-1-x","state":"began"}],` +
			`"voided":["1-1-1-1-x"]}`, &fleet.Beat{}},
		"a negative cost": {`{` + report + `,"runs":[{"token":"1-1-1-1-x","state":"began",` +
			`"cost":{"Tokens":-1}}]}`, &fleet.Beat{}},
		"a member twice":                    {`{` + report + `,"number":2}`, &fleet.Beat{}},
		"a claim of less than none":         {`{` + report + `,"id":"c","free":-1}`, &fleet.Claim{}},
		"an agent without a digest":         {`{` + report + `,"agents":[{"id":"a","max_sensitivity":"public"}]}`, &fleet.Hello{}},
		"an artifact above the directory":   {done(object("artifact", "../x", "k")), &fleet.Done{}},
		"an artifact with an absolute path": {done(object("artifact", "/etc/x", "k")), &fleet.Done{}},
		"an artifact through a directory":   {done(object("artifact", "a/../../x", "k")), &fleet.Done{}},
		"an artifact twice":                 {done(object("artifact", "x", "k") + "," + object("artifact", "x", "k2")), &fleet.Done{}},
		"a key twice":                       {done(object("artifact", "x", "k") + "," + object("artifact", "y", "k")), &fleet.Done{}},
		"a patch with a name":               {done(object("patch", "x", "k")), &fleet.Done{}},
		"a key with a path":                 {done(object("patch", "", "../k")), &fleet.Done{}},
		"a bundle as an output":             {done(object("bundle", "", "k")), &fleet.Done{}},
		"no outcome":                        {`{` + report + `,"token":"1-1-1-1-x"}`, &fleet.Done{}},
		"a note that says nothing":          {`{"runner":"a","incarnation":"i","token":"1-1-1-1-x","number":1}`, &fleet.Note{}},
		"no JSON":                           {`hello`, &fleet.Beat{}},
		"a large message":                   {`{` + report + `,"disk_full":"` + strings.Repeat("x", fleet.MaxMessage) + `"}`, &fleet.Beat{}},
	} {
		if err := fleet.Decode([]byte(c.text), c.into); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	good := done(object("artifact", "a/x..y", "k") + "," + object("patch", "", "k2"))
	if err := fleet.Decode([]byte(good), &fleet.Done{}); err != nil {
		t.Errorf("a good message was refused: %v", err)
	}
}
