package client

import (
	"io"
	"net/http"
	"testing"
)

func TestDetailsReadTheConversationUnderItsNewAndItsOldName(t *testing.T) {
	for _, name := range []string{"conversation", "talk"} {
		daemon := Within(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"task":{"seq":1,"task_id":"t1"},"`+name+`":{"thread":"T1","told":3},"events":[]}`)
		}))
		details, err := daemon.Details(t.Context(), "t1")
		if err != nil || details.Conversation == nil || details.Conversation.Thread != "T1" || details.Task.ID != "t1" {
			t.Errorf("with %q: %+v, %v; want the conversation T1 of t1", name, details, err)
		}
	}
}
