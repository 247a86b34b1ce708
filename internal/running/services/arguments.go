package services

import (
	"errors"
	"fmt"
	"strings"
	"text/template"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// requestFacts are the values for the templates of arguments. Each is a text of the requester, and stays one:
// a template is a text of the arguments, and its result is a text too.
type requestFacts struct {
	TaskID      string
	TaskType    string
	Requester   string
	Description string
	Payload     string // as JSON
}

// wholePayload is the template whose result is the payload itself, and no text.
const wholePayload = "{{.Payload}}"

// CheckArguments refuses templates that can't be filled in.
func CheckArguments(arguments jsontext.Value) error {
	_, err := Fill(arguments, []byte(`{}`))
	return err
}

// Fill fills in the arguments of a call from a request.
func Fill(arguments jsontext.Value, request []byte) (map[string]any, error) {
	var from struct {
		ID          string `json:"task_id"`
		Type        string `json:"task_type"`
		Requester   string `json:"requester_id"`
		Description string `json:"description"`
		Input       struct {
			Payload jsontext.Value `json:"payload"`
		} `json:"input"`
	}
	lenient := json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if err := json.Unmarshal(request, &from, lenient); err != nil {
		return nil, fmt.Errorf("read the request: %w", err)
	}
	if arguments == nil {
		return map[string]any{}, nil
	}
	var object map[string]any
	if err := json.Unmarshal(arguments, &object); err != nil {
		return nil, fmt.Errorf("is not an object: %w", err)
	}
	facts := requestFacts{from.ID, from.Type, from.Requester, from.Description, string(from.Input.Payload)}
	filled, err := fill(object, facts)
	if err != nil {
		return nil, err
	}
	return filled.(map[string]any), nil
}

// fill fills in the templates of a value.
func fill(value any, facts requestFacts) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			filled, err := fill(inner, facts)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			v[name] = filled
		}
	case []any:
		for i, inner := range v {
			filled, err := fill(inner, facts)
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			v[i] = filled
		}
	case string:
		return fillText(v, facts)
	}
	return value, nil
}

func fillText(text string, facts requestFacts) (any, error) {
	if text == wholePayload {
		var payload any // null without one
		if facts.Payload == "" {
			return nil, nil
		}
		err := json.Unmarshal([]byte(facts.Payload), &payload, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
		return payload, err
	}
	t, err := template.New("arguments").Parse(text)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "template: arguments:1: "))
	}
	var filled strings.Builder
	if err := t.Execute(&filled, facts); err != nil {
		return nil, fmt.Errorf("%q names an unknown field; known: TaskID, TaskType, Requester, Description, Payload", text)
	}
	return filled.String(), nil
}
