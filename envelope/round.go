package envelope

import "github.com/go-json-experiment/json"

// round is the value of RoundKey.
type round struct {
	TaskID ID     `json:"task_id"`
	Person string `json:"person"`
}

// RoundOf returns the denied task that this one does once more, in the same worktree, and the person
// who denied it and caused this one; "" for none.
func (t Task) RoundOf() (denied ID, person string) {
	value, ok := t.Metadata[RoundKey]
	if !ok {
		return "", ""
	}
	var r round
	if json.Unmarshal(value, &r) != nil {
		return "", ""
	}
	return r.TaskID, r.Person
}

// round checks the value of RoundKey.
func (r *request) round(at int) {
	if !r.is(at, '{') {
		return
	}
	id, person := r.member(at, "task_id"), r.member(at, "person")
	if id == none || person == none {
		r.refuse(at, "needs the members task_id and person")
		return
	}
	r.id(id)
	r.name(person)
}
