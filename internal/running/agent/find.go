package agent

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/envelope/dialect"
)

var (
	errNothing  = errors.New("the agent printed no answer")
	errNoObject = errors.New("the agent printed no JSON object as its answer")
	errSameLine = errors.New("the agent printed two JSON objects on one line; its answer needs a line of its own")
	errTangled  = errors.New("the agent printed too many broken JSON objects to find its answer")
)

// lenient finds the end of an object. A strict decoder checks the object later and reports
// its problems.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// findObject finds the answer in the output of an agent: the whole text, the content of its
// only markdown fence, or else the last complete object that begins and ends a line.
// Objects for different tasks are no answer, because a choice would be a guess. Whole is
// false if text is the end of a longer one.
func findObject(text []byte, whole bool) ([]byte, error) {
	text = bytes.Trim(dialect.Plain(text), " \t\r\n\uFEFF")
	if len(text) == 0 {
		return nil, errNothing
	}
	if whole {
		if all := dialect.OneObject(text); all != nil {
			return all, nil
		}
	} else {
		_, text, _ = bytes.Cut(text, []byte("\n")) // the first line may be incomplete
	}
	found, task, missing := []byte(nil), "", errNoObject
	for object, err := range dialect.Objects(text) {
		if errors.Is(err, dialect.ErrSameLine) {
			missing = errSameLine
			continue
		}
		if err != nil {
			return nil, errTangled
		}
		found = object
		named := taskOf(object)
		if task != "" && named != "" && named != task {
			return nil, fmt.Errorf("the agent printed answers for two tasks, %s and %s", short(task), short(named))
		}
		task = cmp.Or(task, named)
	}
	if found == nil {
		return nil, missing
	}
	return found, nil
}

// taskOf returns the task id of an object, as written; "" for none.
func taskOf(object []byte) string {
	var named struct {
		TaskID jsontext.Value `json:"task_id"`
	}
	if json.Unmarshal(object, &named, lenient) != nil || named.TaskID.Kind() != '"' {
		return ""
	}
	return string(named.TaskID)
}
