package mcpserver

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A signature says which arguments a tool takes, by its input schema.
type signature struct {
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
}

// A property is what a schema says of an argument. The tools themselves judge what is inside a
// list or an object, and values above a maximum, which they lower.
type property struct {
	Type    string         `json:"type"` // "": any
	Enum    []string       `json:"enum"` // of strings
	Minimum jsontext.Value `json:"minimum"`
}

// signatureOf reads the schema of a tool.
func signatureOf(t tool) (s signature) {
	if err := json.Unmarshal(t.InputSchema, &s); err != nil {
		panic("read schema of " + t.Name + ": " + err.Error())
	}
	return s
}

// check says which argument is wrong, in words for a model. Null stands for an argument that
// is not given.
func (s signature) check(raw jsontext.Value) error {
	arguments := map[string]jsontext.Value{}
	if len(raw) > 0 && raw.Kind() != 'n' {
		if raw.Kind() != '{' {
			return errors.New("arguments: must be an object")
		}
		if err := json.Unmarshal(raw, &arguments); err != nil {
			return unreadable(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		if _, ok := s.Properties[name]; !ok {
			return fmt.Errorf("%s: no such argument; there are %s", name, strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", "))
		}
	}
	for _, name := range s.Required {
		if value := arguments[name]; len(value) == 0 || value.Kind() == 'n' {
			return errors.New(name + ": required")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		if wrong := s.Properties[name].wrong(arguments[name]); wrong != "" {
			return fmt.Errorf("%s: %s", name, wrong)
		}
	}
	return nil
}

// wrong says what a value must be; "" if it is that.
func (p property) wrong(value jsontext.Value) string {
	if value.Kind() == 'n' {
		return ""
	}
	if len(p.Enum) > 0 {
		var word string
		if value.Kind() != '"' || json.Unmarshal(value, &word) != nil {
			return "must be " + anyOf(p.Enum)
		}
		if !slices.Contains(p.Enum, word) {
			return fmt.Sprintf("must be %s, not %.80q", anyOf(p.Enum), word)
		}
		return ""
	}
	if kinds := kindsOf[p.Type]; kinds.of != "" && !strings.ContainsRune(kinds.of, rune(value.Kind())) {
		return "must be " + kinds.words + ", not " + valueWords[value.Kind()]
	}
	if p.Type != "number" && p.Type != "integer" {
		return ""
	}
	number, err := strconv.ParseFloat(string(value), 64)
	if p.Type == "integer" {
		_, err = strconv.ParseInt(string(value), 10, 64)
	}
	if err != nil {
		return fmt.Sprintf("must be %s, not %.40s", kindsOf[p.Type].words, value)
	}
	if least, err := strconv.ParseFloat(string(p.Minimum), 64); err == nil && number < least {
		return fmt.Sprintf("must be at least %s", p.Minimum)
	}
	return ""
}

// kindsOf has, by the type of a schema, the kinds of JSON that it allows, and its name.
var kindsOf = map[string]struct{ of, words string }{
	"string":  {`"`, "text"},
	"number":  {"0", "a number"},
	"integer": {"0", "a whole number"},
	"boolean": {"tf", "true or false"},
	"array":   {"[", "a list"},
	"object":  {"{", "an object"},
}

var valueWords = map[jsontext.Kind]string{'"': "text", '0': "a number", 't': "true", 'f': "false", '[': "a list", '{': "an object"}

// anyOf joins words: "ok, error or partial".
func anyOf(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// unreadable says in plain words why JSON can't be read.
func unreadable(err error) error {
	at := "arguments"
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		at = pathOf(semantic.JSONPointer)
	}
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		at = pathOf(syntactic.JSONPointer)
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("%s: appears more than once", at)
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("%s: is not a field we know", at)
	}
	return fmt.Errorf("%s: can't be read", at)
}

// pathOf returns a place in the arguments as "refs.0.kind".
func pathOf(pointer jsontext.Pointer) string {
	if path := strings.Join(slices.Collect(pointer.Tokens()), "."); path != "" {
		return path
	}
	return "arguments"
}
