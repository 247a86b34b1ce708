package schema_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mailboxd/internal/running/schema"
)

func TestComparingFindsWhatBecameNarrower(t *testing.T) {
	for name, c := range map[string]struct{ before, after, want string }{
		"nothing changed":         {`{"type": "object"}`, `{"type": "object"}`, "same"},
		"annotations":             {`{"title": "a", "default": 1}`, `{"description": "b"}`, "same"},
		"a property called title": {`{"properties": {"title": {}}}`, `{"properties": {}}`, "compatible"},
		"a pattern":               {`{"pattern": "a"}`, `{"pattern": "b"}`, "unknown"},
		"an optional property":    {`{}`, `{"properties": {"n": {"type": "string"}}}`, "unknown"},
		"required added":          {`{"required": ["a"]}`, `{"required": ["b", "a"]}`, "the document: b became required"},
		"required removed":        {`{"required": ["a"]}`, `{}`, "compatible"},
		"type added":              {`{}`, `{"type": "string"}`, "the document: any type became string"},
		"type narrowed": {
			`{"type": ["string", "null"]}`,
			`{"type": "string"}`, "the document: type null is not allowed any more",
		},
		"type widened":      {`{"type": "integer"}`, `{"type": ["number", "null"]}`, "compatible"},
		"number to integer": {`{"type": "number"}`, `{"type": "integer"}`, "the document: type number is not allowed any more"},
		"enum added":        {`{}`, `{"enum": ["a", 1]}`, "the document: any value became one of a or 1"},
		"enum narrowed":     {`{"enum": ["a", "b"]}`, `{"const": "a"}`, "the document: b is not allowed any more"},
		"enum widened":      {`{"const": "a"}`, `{"enum": ["a", "b"]}`, "compatible"},
		"bound added":       {`{}`, `{"maxLength": 3}`, "the document: maxLength became 3"},
		"a bound of none":   {`{}`, `{"minItems": 0}`, "compatible"},
		"bound raised":      {`{"minimum": 1.5}`, `{"minimum": 2}`, "the document: minimum was 1.5 and became 2"},
		"bound lowered":     {`{"maximum": 1e2}`, `{"maximum": 99}`, "the document: maximum was 1e2 and became 99"},
		"bound loosened":    {`{"maximum": 1e2, "minItems": 2}`, `{"maximum": 101, "minItems": 1}`, "compatible"},
		"closed":            {`{}`, `{"additionalProperties": false}`, "the document: additionalProperties became false"},
		"opened":            {`{"additionalProperties": false}`, `{}`, "compatible"},
		"a name left out of closed": {
			`{"additionalProperties": false, "properties": {"a": {}}}`,
			`{"additionalProperties": false}`, "the document: a is not allowed any more",
		},
		"everything refused":   {`true`, `false`, "the document: nothing is allowed any more"},
		"true to an empty one": {`true`, `{}`, "compatible"},
		"deep": {
			`{"properties": {"a": {"items": {}}}}`,
			`{"properties": {"a": {"items": {"required": ["b"]}}}}`, "a[]: b became required",
		},
		"by reference": {
			`{"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {}}}`,
			`{"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "null"}}}`, "a: any type became null",
		},
		"the same part at two places": {
			`{"properties": {"a": {"type": "null"}, "b": {}}}`,
			`{"properties": {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "null"}}}`, "b: any type became null",
		},
		"a part that was put in place": {
			`{"items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"minLength": 3}}}`,
			`{"items": {"minLength": 2}}`, "compatible",
		},
		"keywords beside a reference": {
			`{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/x", "minLength": 3, "definitions": {"x": {}}}`,
			`{"$schema": "http://json-schema.org/draft-07/schema#", "minLength": 3}`, "unknown",
		},
		"another draft": {`{"$schema": "http://json-schema.org/draft-07/schema#", "required": ["a"]}`, `{}`, "unknown"},
		"a list that grew": {
			`{"maxItems": 3, "items": {"enum": [1, 2]}}`,
			`{"maxItems": 4, "items": {"enum": [1, 2, 3]}}`, "compatible",
		},
		"a list of any": {`{}`, `{"items": {"minLength": 1}}`, "unknown"},
		"an optional one in a closed": {
			`{"additionalProperties": false, "properties": {"a": {}}}`,
			`{"additionalProperties": false, "properties": {"a": {}, "b": {"type": "null"}}}`, "compatible",
		},
		"others that had a type": {
			`{"additionalProperties": {"type": "integer"}}`,
			`{"properties": {"n": {"type": "number"}}}`, "compatible",
		},
		"others by a wider type": {
			`{"additionalProperties": {"type": "integer"}}`,
			`{"additionalProperties": {"type": "number"}}`, "compatible",
		},
		"a name that others cover": {
			`{"additionalProperties": false, "properties": {"a": {"type": "null"}}}`,
			`{"additionalProperties": {"type": ["null", "string"]}}`, "compatible",
		},
		"a name that others refuse": {
			`{"properties": {"a": {"type": "null"}}}`,
			`{"additionalProperties": {"type": "string"}}`, "unknown",
		},
		"names by patterns": {
			`{"patternProperties": {"^x": {}}, "additionalProperties": false}`,
			`{"patternProperties": {"^x": {}}, "additionalProperties": false}`, "same",
		},
		"one more pattern of names": {
			`{"patternProperties": {"^x": {}}}`,
			`{"patternProperties": {"^x": {}, "^y": {"type": "null"}}}`, "unknown",
		},
		"the same condition": {
			`{"required": ["a"], "if": {"required": ["b"]}, "then": {"required": ["c"]}}`,
			`{"if": {"required": ["b"]}, "then": {"required": ["c"]}}`, "compatible",
		},
		"another condition": {
			`{"if": {"required": ["b"]}, "then": {"required": ["c"]}}`,
			`{"if": {}, "then": {"required": ["c"]}}`, "unknown",
		},
		"fewer that are contained": {`{"contains": {"const": 1}, "minContains": 0}`, `{"contains": {"const": 1}}`, "unknown"},
		"one of the same": {
			`{"maxLength": 2, "oneOf": [{"const": "a"}, {"const": "b"}]}`,
			`{"oneOf": [{"const": "a"}, {"const": "b"}]}`, "compatible",
		},
		"one of others": {`{"oneOf": [{"const": "a"}]}`, `{"oneOf": [{"const": "a"}, {}]}`, "unknown"},
		"one of a part that changed": {
			`{"oneOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {}}}`,
			`{"oneOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {"pattern": "a"}}}`, "unknown",
		},
		"one of a part that stayed": {
			`{"minLength": 1, "oneOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {}}}`,
			`{"oneOf": [{"$ref": "#/$defs/x"}], "$defs": {"x": {}}}`, "compatible",
		},
		"one of the whole": {
			`{"oneOf": [{"properties": {"a": {"$ref": "#"}}}], "required": ["b"]}`,
			`{"oneOf": [{"properties": {"a": {"$ref": "#"}}}]}`, "unknown",
		},
		"enum with a const beside it": {`{"enum": ["a", "b"]}`, `{"enum": ["a", "b"], "const": "a"}`, "unknown"},
		"a tuple": {
			`{"prefixItems": [{"type": "null"}], "items": {}}`,
			`{"prefixItems": [{"type": "null"}, {"type": "null"}], "items": {}}`, "unknown",
		},
		"a keyword that nobody knows": {`{}`, `{"x-checked": true}`, "unknown"},
		"a part of a part with its own id": {
			`{"minLength": 2, "$defs": {"x": {"$id": "http://x"}}}`, `{"minLength": 1, "$defs": {"x": {"$id": "http://x"}}}`, "unknown",
		},
		"in a circle that opened": {
			`{"required": ["a"], "properties": {"a": {"$ref": "#"}}}`, `{"properties": {"a": {"$ref": "#"}}}`, "compatible",
		},
		"in a circle on one side": {`true`, `{"properties": {"a": {"$ref": "#"}}}`, "compatible"},
		"in a circle": {
			`{"properties": {"a": {"$ref": "#"}}}`,
			`{"required": ["a"], "properties": {"a": {"$ref": "#"}}}`, "the document: a became required; a: a became required",
		},
	} {
		got, err := schema.Compare([]byte(c.before), []byte(c.after))
		words := strings.Join(got.Breaking, "; ")
		switch {
		case got.Same && got.Compatible:
			words = "same"
		case got.Compatible:
			words = "compatible"
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

// What is called compatible is held against a validator: with random schemas and documents.
func TestWhatIsCompatibleAllowsWhatWasAllowed(t *testing.T) {
	set, err := schema.Load("")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	compatible, allowed := 0, 0
	for range 1500 {
		before := randomSchema(random, 2)
		after := before
		if random.IntN(3) > 0 {
			after = randomSchema(random, 2)
		}
		for range random.IntN(3) {
			after = changed(random, after)
		}
		texts := [2][]byte{[]byte(before), []byte(after)}
		got, err := schema.Compare(texts[0], texts[1])
		if err != nil {
			t.Fatalf("Compare(%s, %s) = %v", before, after, err)
		}
		if !got.Compatible {
			continue
		}
		compatible++
		sets := [2]*schema.Set{}
		for i, text := range texts {
			if sets[i], err = set.With("schema://a/b", text); err != nil {
				t.Fatalf("With(%s) = %v", text, err)
			}
		}
		for range 30 {
			document := []byte(randomDocument(random, 2))
			if sets[0].Check("schema://a/b", document) != nil {
				continue
			}
			allowed++
			if err := sets[1].Check("schema://a/b", document); err != nil {
				t.Fatalf("%s is called compatible with %s, and refuses %s: %v", after, before, document, err)
			}
		}
	}
	if compatible < 150 || allowed < 500 {
		t.Errorf("only %d pairs are compatible, and only %d documents are allowed", compatible, allowed)
	}
}

// randomSchema returns a schema of some keywords, of a depth.
func randomSchema(r *rand.Rand, depth int) string {
	parts := []string{
		`"type": ["object", "array", "string"]`, `"type": "integer"`, `"type": ["number", "object"]`, `"enum": [1, "a", null]`, `"const": "a"`,
		`"required": ["a"]`, `"required": ["a", "b"]`, `"minimum": 1`, `"maximum": 2`, `"minLength": 1`, `"maxItems": 1`, `"minProperties": 1`,
		`"additionalProperties": false`, `"title": "t"`,
	}
	if depth > 0 {
		sub := func() string { return randomSchema(r, depth-1) }
		parts = append(parts, `"properties": {"a": `+sub()+`}`, `"properties": {"a": `+sub()+`, "b": `+sub()+`}`, `"additionalProperties": `+sub(),
			`"items": `+sub(), `"not": `+sub(), `"anyOf": [`+sub()+`, `+sub()+`]`, `"contains": `+sub(), `"patternProperties": {"^a": `+sub()+`}`)
	}
	members := map[string]string{}
	for range r.IntN(4) {
		part := parts[r.IntN(len(parts))]
		name, _, _ := strings.Cut(part, ":")
		members[name] = part
	}
	return "{" + strings.Join(slices.Sorted(maps.Values(members)), ", ") + "}"
}

// changed returns a schema with a small change, mostly one that allows more.
func changed(r *rand.Rand, s string) string {
	changes := [][2]string{
		{`["a", "b"]`, `["a"]`}, {`"minimum": 1`, `"minimum": 0`}, {`"maximum": 2`, `"maximum": 3`}, {`"integer"`, `"number"`}, {`: false`, `: {}`},
		{`[1, "a", null]`, `[1, 2, "a", null]`}, {`"minLength": 1`, `"minLength": 0`}, {`"required": ["a"]`, `"required": []`}, {`{"a": `, `{"c": {}, "a": `},
		{`"maxItems": 1`, `"maxItems": 2`}, {`"array", `, ``},
	}
	c := changes[r.IntN(len(changes))]
	return strings.Replace(s, c[0], c[1], 1+r.IntN(2))
}

func randomDocument(r *rand.Rand, depth int) string {
	if depth == 0 || r.IntN(3) == 0 {
		return []string{"null", "0", "1", "2.5", "3", `""`, `"a"`, `"bc"`, "true", "{}", "[]"}[r.IntN(11)]
	}
	if r.IntN(3) == 0 {
		return "[" + strings.Join(slices.Repeat([]string{randomDocument(r, depth-1)}, r.IntN(3)), ", ") + "]"
	}
	var members []string
	for _, name := range []string{"a", "b", "c", "ax"} {
		if r.IntN(2) == 0 {
			members = append(members, `"`+name+`": `+randomDocument(r, depth-1))
		}
	}
	return "{" + strings.Join(members, ", ") + "}"
}
