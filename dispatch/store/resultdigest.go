package store

import (
	"crypto/sha256"
	"encoding/hex"

	"mailboxd/internal/decisions/core"
	"mailboxd/internal/decisions/task"
)

// resultDigests returns the SHA-256 of each result that a group of events sets, by the index of the event
// that has it: the one that sets the result if readers see it, or else the last one about the task that they
// see. So the sealed events name the content of each result.
func resultDigests(events []core.Event) map[int]string {
	var digests map[int]string
	for i, e := range events {
		moved, ok := e.Change.(*core.Moved)
		if !ok || moved.Result == nil {
			continue
		}
		at := -1
		for j, shown := range events {
			if shown.Task == e.Task && shown.Kind != "" && (j == i || at != i) {
				at = j
			}
		}
		if at >= 0 {
			if digests == nil {
				digests = map[int]string{}
			}
			sum := sha256.Sum256(moved.Result)
			digests[at] = hex.EncodeToString(sum[:])
		}
	}
	return digests
}

// withResult adds the digest of a result to the data of an event; "" is none.
func withResult(e task.Event, digest string) task.Event {
	if digest == "" {
		return e
	}
	head := []byte{'{'}
	if len(e.Data) > len("{}") {
		head = append(append(make([]byte, 0, len(e.Data)+96), e.Data[:len(e.Data)-1]...), ',')
	}
	e.Data = append(append(append(head, `"`+task.ResultDigest+`":"`...), digest...), `"}`...)
	return e
}
