package conversation_test

import (
	"slices"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/decisions/conversation"
)

func TestReferencesOfAMessage(t *testing.T) {
	type names = []conversation.Reference
	for name, c := range map[string]struct {
		m    envelope.Message
		want names
	}{
		"nothing":                             {envelope.Message{Act: envelope.Informs}, nil},
		"a task":                              {envelope.Message{Act: envelope.Informs, Task: "t1"}, names{{Task: "t1"}}},
		"a message":                           {envelope.Message{Act: envelope.Informs, Cause: "m1"}, names{{Task: "m1"}, {Message: "m1"}}},
		"a message whose name is no file's":   {envelope.Message{Act: envelope.Informs, Cause: "a/b"}, names{{Task: "h-c14cddc033f64b9dea80ea675cf280a0"}, {Message: "a/b"}}},
		"both":                                {envelope.Message{Act: envelope.Cancels, Task: "t1", Cause: "m1"}, names{{Task: "t1"}, {Task: "m1"}, {Message: "m1"}}},
		"a request in CLowl":                  {envelope.Message{Act: envelope.Delegates, Dialect: envelope.CLowl, Task: "m2", ID: "m2", Cause: "m1"}, names{{Task: "m1"}, {Message: "m1"}}},
		"a request in CLowl with a dot":       {envelope.Message{Act: envelope.Requests, Dialect: envelope.CLowl, Task: "m1.2"}, nil},
		"CAP-21 a request with a dotted id":   {envelope.Message{Act: envelope.Delegates, Dialect: envelope.CAP, Task: "T1.2.3"}, names{{Task: "T1.2"}, {Task: "T1"}}},
		"CAP-21 a request without a dot":      {envelope.Message{Act: envelope.Delegates, Dialect: envelope.CAP, Task: "T1"}, nil},
		"a message in CAP with a dotted id":   {envelope.Message{Act: envelope.Informs, Dialect: envelope.CAP, Task: "T1.2"}, names{{Task: "T1.2"}}},
		"CAP-21 a dot that begins the id":     {envelope.Message{Act: envelope.Delegates, Dialect: envelope.CAP, Task: ".1"}, nil},
		"CAP-21 a dotted id that is digested": {envelope.Message{Act: envelope.Delegates, Dialect: envelope.CAP, Task: "h-1", ID: "T1.a/b"}, names{{Task: "T1"}}},
	} {
		if got := conversation.References(c.m); !slices.Equal(got, c.want) {
			t.Errorf("%s: References() = %+v; want %+v", name, got, c.want)
		}
	}
}
