package reader_test

import (
	"io"
	"net/http"
	"testing"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
)

func TestAnOlderDaemonIsAskedForEachTask(t *testing.T) {
	older := http.NewServeMux()
	older.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error": {"kind": "no_route", "message": "there is no such path at this socket"}}`)
	})
	older.HandleFunc("/v1/tasks/t1", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"task": {"task_id": "t1"}, "request": {"schema_version": "1.0", "task_id": "t1", "requester_id": "ada", "target_agent": "a",
			"target_role": "executor", "task_type": "x", "description": "Correct it", "input": {"refs": [], "payload": {}}}, "approvals": [{"digest": "d1"}]}`)
	})
	found, err := (&reader.Reader{Client: client.Within(older)}).Asked(t.Context(), []envelope.ID{"t1"})
	if one := found["t1"]; err != nil || one.Task.Description != "Correct it" || len(one.Approvals) != 1 || one.Approvals[0].Digest != "d1" {
		t.Errorf("Asked = %+v, %v; want the description and one approval", found, err)
	}
}
