package envelope_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
)

func TestARequestOfClutchIsRoutedUnlessItNamesOneAgent(t *testing.T) {
	agent, group := envelope.Recipient{Name: "coder"}, envelope.Recipient{Name: "coders", Group: true}
	for _, c := range []struct {
		part   *envelope.ClutchPart
		routed bool
	}{
		{nil, false},
		{&envelope.ClutchPart{}, true},
		{&envelope.ClutchPart{Recipients: []envelope.Recipient{agent}}, false},
		{&envelope.ClutchPart{Recipients: []envelope.Recipient{group}}, true},
		{&envelope.ClutchPart{Recipients: []envelope.Recipient{{Name: "router"}}}, true},
		{&envelope.ClutchPart{Recipients: []envelope.Recipient{{Name: "orchestrator"}}}, true},
		{&envelope.ClutchPart{Recipients: []envelope.Recipient{group, agent}}, false},
	} {
		if got := c.part.Routed(); got != c.routed {
			t.Errorf("%+v is routed: %t; want %t", c.part, got, c.routed)
		}
	}
}

func TestARequestOfClutchNeedsAFittingAgentForEachRequirement(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		part  *envelope.ClutchPart
		needs bool
	}{
		{nil, false},
		{&envelope.ClutchPart{}, false},
		{&envelope.ClutchPart{Requires: []string{"code"}}, true},
		{&envelope.ClutchPart{SecurityPolicy: envelope.SecurityPolicy{Sandbox: &yes}}, true},
		{&envelope.ClutchPart{SecurityPolicy: envelope.SecurityPolicy{Sandbox: &no}}, false},
		{&envelope.ClutchPart{SecurityPolicy: envelope.SecurityPolicy{Network: "none"}}, true},
	} {
		if got := c.part.NeedsFit(); got != c.needs {
			t.Errorf("%+v needs a fitting agent: %t; want %t", c.part, got, c.needs)
		}
	}
}

func TestASenderOfClutchGetsTheMessagesThatItWants(t *testing.T) {
	for _, c := range []struct {
		part  *envelope.ClutchPart
		wants bool
	}{
		{nil, false},
		{&envelope.ClutchPart{}, false},
		{&envelope.ClutchPart{Meta: jsontext.Value(`{"wants":["task","routing"]}`)}, true},
		{&envelope.ClutchPart{Meta: jsontext.Value(`{"wants":["task"]}`)}, false},
		{&envelope.ClutchPart{Meta: jsontext.Value(`{"wants":"routing"}`)}, false},
	} {
		if got := c.part.Wants("routing"); got != c.wants {
			t.Errorf("%+v wants routing: %t; want %t", c.part, got, c.wants)
		}
	}
}

func TestAResultSaysWhetherTheSignatureOfItsRequestWasVerified(t *testing.T) {
	signed := envelope.Task{Clutch: &envelope.ClutchPart{Auth: envelope.Signature{Scheme: "ed25519"}}}
	verified := envelope.Task{Clutch: signed.Clutch.Verify()}
	for _, c := range []struct {
		name        string
		request     envelope.Task
		extra, want string
	}{
		{"a signed request", signed, "", `{"mbx.signature":"unverified"}`},
		{"a request with a verified signature", verified, "", `{"mbx.signature":"verified"}`},
		{"what the agent says", signed, `{"mbx.signature":"verified","x":1}`, `{"mbx.signature":"unverified","x":1}`},
		{"what the agent says of no signature", envelope.Task{}, `{"mbx.signature":"verified","x":1}`, `{"x":1}`},
		{"nothing", envelope.Task{}, `{"x":1}`, `{"x":1}`},
		{"what is no object", signed, `[1]`, `[1]`},
	} {
		r := envelope.Result{}
		if c.extra != "" {
			r.Extra = jsontext.Value(c.extra)
		}
		if envelope.MarkSignature(&r, c.request); string(r.Extra) != c.want {
			t.Errorf("%s: %s; want %s", c.name, r.Extra, c.want)
		}
	}
}

func TestALineOfARequestBeginsWithItsTask(t *testing.T) {
	for want, members := range map[string]map[string]any{
		`{"task_id":"t"}`:               {"task_id": "t"},
		`{"task_id":"t","a":1,"z":[2]}`: {"z": []int{2}, "a": 1, "task_id": "t"},
	} {
		if got, err := envelope.RequestLine(members); string(got) != want || err != nil {
			t.Errorf("RequestLine(%v) = %s, %v; want %s", members, got, err, want)
		}
	}
	for _, members := range []map[string]any{{"task_id": func() {}}, {"task_id": "t", "x": func() {}}} {
		if got, err := envelope.RequestLine(members); err == nil {
			t.Errorf("RequestLine(of a function) = %s; want an error", got)
		}
	}
}
