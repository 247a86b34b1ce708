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
	errTangled  = errors.New("the agent printed too many broken JSON objects to find its answer")
)

// lenient finds where an object ends; whether it may be used is decided later,
// by a reader who can say what is wrong with it.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// findObject finds the answer among what else an agent prints: the whole text,
// or what one markdown fence around it holds, or else the last complete object
// that begins and ends a line. Objects that name different tasks are no answer,
// for we would have to guess. Whole is false when text is only the end of more.
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
		_, text, _ = bytes.Cut(text, []byte("\n")) // the first line may be the end of one
	}
	found, task := []byte(nil), ""
	for object, err := range dialect.Objects(text) {
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
		return nil, errNoObject
	}
	return found, nil
}

// taskOf returns the task an object names, as written; "" when it names none.
func taskOf(object []byte) string {
	var named struct {
		TaskID jsontext.Value `json:"task_id"`
	}
	if json.Unmarshal(object, &named, lenient) != nil || named.TaskID.Kind() != '"' {
		return ""
	}
	return string(named.TaskID)
}
