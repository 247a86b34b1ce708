package talk_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/talk"
)

// CAP-24, and mapping 2.2 for the others.
func TestWhatAnOverseerDecides(t *testing.T) {
	say := func(d envelope.Dialect, act envelope.Act, to, kind string) envelope.Message {
		return envelope.Message{Dialect: d, Act: act, From: "qa", To: []string{to}, Type: kind, Text: "words"}
	}
	said := func(m ...envelope.Message) []envelope.Message { return m }
	output := func(extra string) envelope.Result {
		return envelope.Result{Status: envelope.OK, Output: envelope.Output{Summary: "words", Extra: jsontext.Value(extra)}}
	}
	const clowl, cap, ainl = envelope.CLowl, envelope.CAP, envelope.AINL
	for name, tt := range map[string]struct {
		review talk.Review
		want   talk.Decision
	}{
		"a message to its requester":             {talk.Review{Dialect: cap, GoesOn: true, Said: said(say(cap, envelope.Informs, "boss", ""))}, talk.Approves},
		"that and a word to the agent":           {talk.Review{Dialect: cap, Said: said(say(cap, envelope.Informs, "boss", "")), Answer: output(`{}`)}, talk.Approves},
		"that and an inquiry":                    {talk.Review{Dialect: cap, GoesOn: true, Said: said(say(cap, envelope.Informs, "boss", ""), say(cap, envelope.Inquires, "worker", ""))}, talk.SendsBack},
		"an inquiry":                             {talk.Review{Dialect: cap, GoesOn: true, Said: said(say(cap, envelope.Inquires, "worker", ""))}, talk.SendsBack},
		"a message to the agent":                 {talk.Review{Dialect: cap, Answer: output(`{}`)}, talk.SendsBack},
		"a decision in a message to the agent":   {talk.Review{Dialect: cap, Answer: output(`{"attachments":[{"type":"python_object","object":{"decision":"approved"}}]}`)}, talk.Approves},
		"a decision in another thing":            {talk.Review{Dialect: cap, Answer: output(`{"attachments":[{"type":"file","object":{"decision":"approved"}}]}`)}, talk.SendsBack},
		"an error":                               {talk.Review{Dialect: cap, Answer: envelope.Result{Status: envelope.Failed}}, talk.Rejects},
		"a crash":                                {talk.Review{Dialect: cap, Broken: true, Answer: output(`{"decision":"approved"}`)}, talk.Unable},
		"a question to somebody else":            {talk.Review{Dialect: cap, GoesOn: true, Said: said(say(cap, envelope.Asks, "user", ""))}, ""},
		"a question to its requester":            {talk.Review{Dialect: cap, GoesOn: true, Said: said(say(cap, envelope.Asks, "boss", ""))}, ""},
		"CLowl: INF of type approve":             {talk.Review{Dialect: clowl, GoesOn: true, Said: said(say(clowl, envelope.Informs, "worker", "approve"))}, talk.Approves},
		"CLowl: any INF":                         {talk.Review{Dialect: clowl, GoesOn: true, Said: said(say(clowl, envelope.Informs, "boss", "news"))}, ""},
		"CLowl: a QRY to the agent":              {talk.Review{Dialect: clowl, GoesOn: true, Said: said(say(clowl, envelope.Asks, "worker", "review"))}, talk.SendsBack},
		"CLowl: DONE without a decision":         {talk.Review{Dialect: clowl, Answer: output(`{}`)}, talk.Unable},
		"AINL: approved":                         {talk.Review{Dialect: ainl, Answer: output(`{"decision":"approved"}`)}, talk.Approves},
		"AINL: rejected":                         {talk.Review{Dialect: ainl, Answer: output(`{"decision":"rejected"}`)}, talk.Rejects},
		"AINL: needs_revision":                   {talk.Review{Dialect: ainl, Answer: output(`{"decision":"needs_revision"}`)}, talk.SendsBack},
		"AINL: ok, and nothing else":             {talk.Review{Dialect: ainl, Answer: output(`{}`)}, talk.Unable},
		"AINL: a decision that is no text":       {talk.Review{Dialect: ainl, Answer: output(`{"decision":["approved"]}`)}, talk.Unable},
		"AINL: a decision that nobody has heard": {talk.Review{Dialect: ainl, Answer: output(`{"decision":"fine"}`)}, talk.Unable},
	} {
		tt.review.Worker, tt.review.Asked = "worker", "boss"
		if got, _ := tt.review.Decide(); got != tt.want {
			t.Errorf("CAP-24 %s: Decide() = %q; want %q", name, got, tt.want)
		}
	}
}

// CAP-24: what the agent says of itself is nothing that its overseer decides.
func TestADecisionThatAnOverseerWasHandedIsNotItsOwn(t *testing.T) {
	thing := func(object string) []byte { return []byte(`{"type":"python_object","object":` + object + `}`) }
	message := func(object string) envelope.Message {
		return envelope.Message{
			Dialect: envelope.CAP, Act: envelope.Informs, From: "qa", To: []string{"worker"}, Text: "see this",
			Attachments: []envelope.Attachment{{Type: "python_object", Raw: thing(object)}},
		}
	}
	answer := func(object string) envelope.Result {
		extra := append(append([]byte(`{"attachments":[`), thing(object)...), "]}"...)
		return envelope.Result{Status: envelope.OK, Output: envelope.Output{Summary: "words", Extra: extra}}
	}
	const theirs, own = `{ "score": 1.0, "decision": "approved" }`, `{"decision":"approved","by":"qa"}`
	seen := []jsontext.Value{jsontext.Value(`{"attachments":[{"type":"python_object","object":{"decision":"approved","score":1}}]}`)}
	for name, tt := range map[string]struct {
		review talk.Review
		want   talk.Decision
	}{
		"in a message":                  {talk.Review{GoesOn: true, Said: []envelope.Message{message(theirs)}}, talk.SendsBack},
		"in its answer":                 {talk.Review{Answer: answer(theirs)}, talk.SendsBack},
		"in a message, and another is":  {talk.Review{GoesOn: true, Said: []envelope.Message{message(own)}}, talk.Approves},
		"in its answer, and another is": {talk.Review{Answer: answer(own)}, talk.Approves},
	} {
		tt.review.Worker, tt.review.Asked, tt.review.Dialect, tt.review.Seen = "worker", "boss", envelope.CAP, seen
		if got, _ := tt.review.Decide(); got != tt.want {
			t.Errorf("CAP-24 %s: Decide() = %q; want %q", name, got, tt.want)
		}
	}
}
