package talk

import (
	"bytes"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// handed reports whether an object stands, with whatever space and order, in what
// the overseer was handed to look at. Then it is not its own (CAP-24).
func (r Review) handed(object jsontext.Value) bool {
	if object = canonical(object); object == nil {
		return false
	}
	return slices.ContainsFunc(r.Seen, func(seen jsontext.Value) bool { return holds(canonical(seen), object) })
}

// holds reports whether a value is an object, or has it in it somewhere. Both are
// canonical.
func holds(value, object jsontext.Value) bool {
	switch value.Kind() {
	case '{':
		var members map[string]jsontext.Value
		if bytes.Equal(value, object) {
			return true
		}
		inside := func(v jsontext.Value) bool { return holds(v, object) }
		return json.Unmarshal(value, &members) == nil && slices.ContainsFunc(slices.Collect(maps.Values(members)), inside)
	case '[':
		var items []jsontext.Value
		return json.Unmarshal(value, &items) == nil && slices.ContainsFunc(items, func(v jsontext.Value) bool { return holds(v, object) })
	}
	return false
}

// canonical is a copy of a value in the one form of RFC 8785; nil for what is no
// JSON.
func canonical(value jsontext.Value) jsontext.Value {
	value = value.Clone()
	if value.Canonicalize() != nil {
		return nil
	}
	return value
}
