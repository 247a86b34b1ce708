package schema_test

import (
	"strings"
	"testing"

	"mailboxd/internal/running/schema"
)

func TestComparingFindsWhatBecameNarrower(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want string }{
		"nothing changed":           {`{"type": "object"}`, `{"type": "object"}`, "same"},
		"annotations":               {`{"title": "a", "default": 1}`, `{"description": "b"}`, "same"},
		"a property called title":   {`{"properties": {"title": {}}}`, `{"properties": {}}`, "unknown"},
		"a pattern":                 {`{"pattern": "a"}`, `{"pattern": "b"}`, "unknown"},
		"an optional property":      {`{}`, `{"properties": {"n": {"type": "string"}}}`, "unknown"},
		"required added":            {`{"required": ["a"]}`, `{"required": ["b", "a"]}`, "the document: b became required"},
		"required removed":          {`{"required": ["a"]}`, `{}`, "unknown"},
		"type added":                {`{}`, `{"type": "string"}`, "the document: any type became string"},
		"type narrowed":             {`{"type": ["string", "null"]}`, `{"type": "string"}`, "the document: type null is not allowed any more"},
		"type widened":              {`{"type": "integer"}`, `{"type": ["number", "null"]}`, "unknown"},
		"number to integer":         {`{"type": "number"}`, `{"type": "integer"}`, "the document: type number is not allowed any more"},
		"enum added":                {`{}`, `{"enum": ["a", 1]}`, "the document: any value became one of a or 1"},
		"enum narrowed":             {`{"enum": ["a", "b"]}`, `{"const": "a"}`, "the document: b is not allowed any more"},
		"enum widened":              {`{"const": "a"}`, `{"enum": ["a", "b"]}`, "unknown"},
		"bound added":               {`{}`, `{"maxLength": 3}`, "the document: maxLength became 3"},
		"a bound of none":           {`{}`, `{"minItems": 0}`, "unknown"},
		"bound raised":              {`{"minimum": 1.5}`, `{"minimum": 2}`, "the document: minimum was 1.5 and became 2"},
		"bound lowered":             {`{"maximum": 1e2}`, `{"maximum": 99}`, "the document: maximum was 1e2 and became 99"},
		"bound loosened":            {`{"maximum": 1e2, "minItems": 2}`, `{"maximum": 101, "minItems": 1}`, "unknown"},
		"closed":                    {`{}`, `{"additionalProperties": false}`, "the document: additionalProperties became false"},
		"opened":                    {`{"additionalProperties": false}`, `{}`, "unknown"},
		"a name left out of closed": {`{"additionalProperties": false, "properties": {"a": {}}}`, `{"additionalProperties": false}`, "the document: a is not allowed any more"},
		"everything refused":        {`true`, `false`, "the document: nothing is allowed any more"},
		"true to an empty one":      {`true`, `{}`, "unknown"},
		"deep":                      {`{"properties": {"a": {"items": {}}}}`, `{"properties": {"a": {"items": {"required": ["b"]}}}}`, "a[]: b became required"},
		"by reference":              {`{"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {}}}`, `{"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "null"}}}`, "a: any type became null"},
		"in a circle":               {`{"properties": {"a": {"$ref": "#"}}}`, `{"required": ["a"], "properties": {"a": {"$ref": "#"}}}`, "the document: a became required; a: a became required"},
	} {
		got, err := schema.Compare([]byte(c.before), []byte(c.after))
		words := strings.Join(got.Breaking, "; ")
		switch {
		case got.Same:
			words = "same"
		case words == "":
			words = "unknown"
		}
		if err != nil || words != c.want {
			t.Errorf("%s: Compare(%s, %s) = %q, %v; want %q", name, c.before, c.after, words, err, c.want)
		}
	}
	if _, err := schema.Compare([]byte(`{}`), []byte(`{`)); err == nil || !strings.Contains(err.Error(), "the new one") {
		t.Errorf("Compare(half a schema) = %v; want an error about the new one", err)
	}
}
