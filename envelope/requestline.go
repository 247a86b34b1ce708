package envelope

import (
	"maps"

	"github.com/go-json-experiment/json"
)

// RequestLine returns a request with these members, among them task_id, as one line without its
// line feed. It begins with task_id, so that the head of the line tells which task it requests;
// the other members are sorted.
func RequestLine(members map[string]any) ([]byte, error) {
	rest := maps.Clone(members)
	delete(rest, "task_id")
	first, err := json.Marshal(map[string]any{"task_id": members["task_id"]})
	if err != nil || len(rest) == 0 {
		return first, err
	}
	line, err := json.Marshal(rest, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return append(append(first[:len(first)-1], ','), line[1:]...), nil
}
