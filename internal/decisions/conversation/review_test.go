package conversation_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
)

// CAP-24, and mapping 2.2 for the others.
func TestWhatAnOverseerDecides(t *testing.T) {
	const clowl, cap, ainl = envelope.CLowl, envelope.CAP, envelope.AINL
	say := func(d envelope.Dialect, act envelope.Act, to, kind string) envelope.Message {
		return envelope.Message{Dialect: d, Act: act, From: "qa", To: []string{to}, Type: kind, Text: "words"}
	}
	said := func(m ...envelope.Message) []envelope.Message { return m }
	delegate := func(tie envelope.Tie) envelope.Message {
		return envelope.Message{Dialect: cap, Act: envelope.Delegates, From: "qa", To: []string{"helper"}, Tie: tie}
	}
	output := func(extra string) envelope.Result {
		return envelope.Result{Status: envelope.OK, Output: envelope.Output{Summary: "words", Extra: jsontext.Value(extra)}}
	}
	for name, tt := range map[string]struct {
		review conversation.Review
		want   conversation.Decision
	}{
		"a message to its requester":             {conversation.Review{Dialect: cap, Waits: true, Messages: said(say(cap, envelope.Informs, "boss", ""))}, conversation.Approves},
		"that and a word to the agent":           {conversation.Review{Dialect: cap, Messages: said(say(cap, envelope.Informs, "boss", "")), Answer: output(`{}`)}, conversation.Approves},
		"that and an inquiry":                    {conversation.Review{Dialect: cap, Waits: true, Messages: said(say(cap, envelope.Informs, "boss", ""), say(cap, envelope.Inquires, "worker", ""))}, conversation.SendsBack},
		"an inquiry":                             {conversation.Review{Dialect: cap, Waits: true, Messages: said(say(cap, envelope.Inquires, "worker", ""))}, conversation.SendsBack},
		"a message to the agent":                 {conversation.Review{Dialect: cap, Answer: output(`{}`)}, conversation.SendsBack},
		"a decision in a message to the agent":   {conversation.Review{Dialect: cap, Answer: output(`{"attachments":[{"type":"python_object","object":{"decision":"approved"}}]}`)}, conversation.Approves},
		"a decision in another thing":            {conversation.Review{Dialect: cap, Answer: output(`{"attachments":[{"type":"file","object":{"decision":"approved"}}]}`)}, conversation.SendsBack},
		"an error":                               {conversation.Review{Dialect: cap, Answer: envelope.Result{Status: envelope.Failed}}, conversation.Rejects},
		"a crash":                                {conversation.Review{Dialect: cap, Broken: true, Answer: output(`{"decision":"approved"}`)}, conversation.Unable},
		"a question to somebody else":            {conversation.Review{Dialect: cap, Waits: true, Messages: said(say(cap, envelope.Asks, "user", ""))}, ""},
		"a question to its requester":            {conversation.Review{Dialect: cap, Waits: true, Messages: said(say(cap, envelope.Asks, "boss", ""))}, ""},
		"a message beside a delegation":          {conversation.Review{Dialect: cap, Waits: true, Messages: said(delegate(envelope.Assist), say(cap, envelope.Informs, "boss", ""))}, ""},
		"a message beside a fork":                {conversation.Review{Dialect: cap, Waits: true, Messages: said(delegate(envelope.Fork), say(cap, envelope.Informs, "boss", ""))}, conversation.Approves},
		"an answer to its requester":             {conversation.Review{Dialect: cap, Waits: true, Messages: said(say(cap, envelope.Completes, "boss", ""))}, conversation.Approves},
		"progress to its requester":              {conversation.Review{Dialect: cap, Waits: true, Messages: said(say(cap, envelope.Reports, "boss", ""))}, ""},
		"CLowl: INF of type approve":             {conversation.Review{Dialect: clowl, Waits: true, Messages: said(say(clowl, envelope.Informs, "worker", "approve"))}, conversation.Approves},
		"CLowl: any INF":                         {conversation.Review{Dialect: clowl, Waits: true, Messages: said(say(clowl, envelope.Informs, "boss", "news"))}, ""},
		"CLowl: a QRY to the agent":              {conversation.Review{Dialect: clowl, Waits: true, Messages: said(say(clowl, envelope.Asks, "worker", "review"))}, conversation.SendsBack},
		"CLowl: DONE without a decision":         {conversation.Review{Dialect: clowl, Answer: output(`{}`)}, conversation.Unable},
		"AINL: approved":                         {conversation.Review{Dialect: ainl, Answer: output(`{"decision":"approved"}`)}, conversation.Approves},
		"AINL: rejected":                         {conversation.Review{Dialect: ainl, Answer: output(`{"decision":"rejected"}`)}, conversation.Rejects},
		"AINL: needs_revision":                   {conversation.Review{Dialect: ainl, Answer: output(`{"decision":"needs_revision"}`)}, conversation.SendsBack},
		"AINL: ok, and nothing else":             {conversation.Review{Dialect: ainl, Answer: output(`{}`)}, conversation.Unable},
		"AINL: a decision that is no text":       {conversation.Review{Dialect: ainl, Answer: output(`{"decision":["approved"]}`)}, conversation.Unable},
		"AINL: a decision that nobody has heard": {conversation.Review{Dialect: ainl, Answer: output(`{"decision":"fine"}`)}, conversation.Unable},
	} {
		tt.review.Worker, tt.review.Requester = "worker", "boss"
		if got, _ := tt.review.Decide(); got != tt.want {
			t.Errorf("CAP-24 %s: Decide() = %q; want %q", name, got, tt.want)
		}
	}
}

// CAP-24: a decision in the agent's own text is not the overseer's.
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
		review conversation.Review
		want   conversation.Decision
	}{
		"in a message":                  {conversation.Review{Waits: true, Messages: []envelope.Message{message(theirs)}}, conversation.SendsBack},
		"in its answer":                 {conversation.Review{Answer: answer(theirs)}, conversation.SendsBack},
		"in a message, and another is":  {conversation.Review{Waits: true, Messages: []envelope.Message{message(own)}}, conversation.Approves},
		"in its answer, and another is": {conversation.Review{Answer: answer(own)}, conversation.Approves},
	} {
		tt.review.Worker, tt.review.Requester, tt.review.Dialect, tt.review.Seen = "worker", "boss", envelope.CAP, seen
		if got, _ := tt.review.Decide(); got != tt.want {
			t.Errorf("CAP-24 %s: Decide() = %q; want %q", name, got, tt.want)
		}
	}
}
