package replay

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// lenient reads what other programs wrote.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func quoted(text string) jsontext.Value {
	value, _ := json.Marshal(text, lenient) // a text can always be encoded
	return value
}

// encode writes an object with its names in order.
func encode(members map[string]jsontext.Value) jsontext.Value {
	value, _ := json.Marshal(members, lenient, json.Deterministic(true)) // values that were decoded can be encoded
	return value
}

// bare returns the name of an agent without its prefix.
func bare(agent string) string { return strings.TrimPrefix(agent, "agent:") }
