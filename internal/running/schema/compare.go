package schema

import (
	"encoding/json" // for Number alone, which the library knows
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
)

// A Comparison is what a new version of a schema does to documents that the old one allows.
type Comparison struct {
	Breaking   []string // each: a place, and why documents that were valid are not any more
	Same       bool     // the two allow the same documents; they may differ in annotations
	Compatible bool     // the new one surely allows what the old one does
}

// Compare looks for changes by which a schema refuses documents that it allowed: a property that
// became required, a type, an enum or a bound that became narrower, an object that was closed.
// It finds no others, such as a changed pattern, so a comparison without Breaking changes that is
// neither Same nor Compatible tells nothing.
func Compare(before, after []byte) (Comparison, error) {
	var documents [2]any
	for i, text := range [][]byte{before, after} {
		var err error
		if documents[i], err = decode(text); err != nil {
			return Comparison{}, fmt.Errorf("compare schemas: the %s one %w", []string{"old", "new"}[i], err)
		}
	}
	c := comparer{pair: pair{documents[0], documents[1], map[string]bool{}}}
	c.compare("", documents[0], documents[1])
	same := reflect.DeepEqual(bare(documents[0]), bare(documents[1]))
	return Comparison{
		Breaking: c.breaking, Same: len(c.breaking) == 0 && same,
		Compatible: len(c.breaking) == 0 && (same || provesCompatible(documents[0], documents[1])),
	}, nil
}

// A pair is two documents that are compared from their roots down.
type pair struct {
	before, after any
	met           map[string]bool // pairs of parts to which a reference led
}

// A comparer finds what became narrower.
type comparer struct {
	pair
	breaking []string
}

func (c *comparer) add(at, format string, args ...any) {
	if at == "" {
		at = "the document"
	}
	c.breaking = append(c.breaking, at+": "+fmt.Sprintf(format, args...))
}

// compare compares the schemas of one place of a document.
func (c *comparer) compare(at string, before, after any) {
	before, after, known := c.resolve(before, after)
	if known {
		return
	}
	if after == false && before != false {
		c.add(at, "nothing is allowed any more")
		return
	}
	narrower, ok := after.(map[string]any)
	wider, _ := before.(map[string]any) // true allows what an empty one does
	if !ok || before == false {
		return
	}
	c.compareRequired(at, wider, narrower)
	c.compareTypes(at, wider, narrower)
	c.compareEnums(at, wider, narrower)
	c.compareBounds(at, wider, narrower)
	c.compareClosed(at, wider, narrower)
	was, is := objectAt(wider, "properties"), objectAt(narrower, "properties")
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if earlier, ok := was[name]; ok {
			c.compare(strings.TrimPrefix(at+"."+name, "."), earlier, is[name])
		}
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		earlier, had := wider[keyword]
		if later, has := narrower[keyword]; had && has && later != false {
			c.compare(at+"[]", earlier, later)
		}
	}
}

// resolve follows references within each schema. A pair of parts that was compared before, by its
// references or its content, is known.
func (c *pair) resolve(before, after any) (was, is any, known bool) {
	was, from := follow(before, c.before)
	is, to := follow(after, c.after)
	if from+to == "" {
		return was, is, false
	}
	if from == "" {
		from = fmt.Sprint(was)
	}
	if to == "" {
		to = fmt.Sprint(is)
	}
	known = c.met[from+" "+to]
	c.met[from+" "+to] = true
	return was, is, known
}

// follow returns what a reference to a part of its own document names, and the reference.
// Another schema is itself.
func follow(s, root any) (any, string) {
	object, _ := s.(map[string]any)
	ref, _ := object["$ref"].(string)
	if ref != "#" && !strings.HasPrefix(ref, "#/") || len(object) > 1 {
		return s, ""
	}
	part := root
	for name := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		if name == "" {
			continue
		}
		members, _ := part.(map[string]any)
		if part = members[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]; part == nil {
			return s, ""
		}
	}
	return part, ref
}

func (c *comparer) compareRequired(at string, before, after map[string]any) {
	was := listAt(before, "required")
	for _, name := range listAt(after, "required") {
		if !slices.Contains(was, name) {
			c.add(at, "%v became required", name)
		}
	}
}

func (c *comparer) compareTypes(at string, before, after map[string]any) {
	is := listAt(after, "type")
	if len(is) == 0 {
		return
	}
	was := listAt(before, "type")
	if len(was) == 0 {
		c.add(at, "any type became %s", words(is))
		return
	}
	for _, one := range was {
		if !hasType(is, one) {
			c.add(at, "type %v is not allowed any more", one)
		}
	}
}

// hasType reports whether one of some types has all values of another one.
func hasType(types []any, one any) bool {
	return slices.Contains(types, one) || one == "integer" && slices.Contains(types, any("number"))
}

func (c *comparer) compareEnums(at string, before, after map[string]any) {
	is, has := values(after)
	if !has {
		return
	}
	was, had := values(before)
	if !had {
		c.add(at, "any value became one of %s", words(is))
		return
	}
	for _, one := range was {
		if !containsAll(is, []any{one}) {
			c.add(at, "%v is not allowed any more", one)
		}
	}
}

// bounds are the keywords of limits, and whether each one is the most.
var bounds = map[string]bool{
	"minimum": false, "exclusiveMinimum": false, "minLength": false, "minItems": false, "minProperties": false,
	"maximum": true, "exclusiveMaximum": true, "maxLength": true, "maxItems": true, "maxProperties": true,
}

func (c *comparer) compareBounds(at string, before, after map[string]any) {
	for _, keyword := range slices.Sorted(maps.Keys(bounds)) {
		is, has := rational(after[keyword])
		if !has || isNoBound(keyword, is) {
			continue
		}
		was, had := rational(before[keyword])
		switch {
		case !had:
			c.add(at, "%s became %v", keyword, after[keyword])
		case bounds[keyword] && is.Cmp(was) < 0, !bounds[keyword] && is.Cmp(was) > 0:
			c.add(at, "%s was %v and became %v", keyword, before[keyword], after[keyword])
		}
	}
}

// isNoBound reports whether a bound says nothing: no list and no object has fewer than no items.
func isNoBound(keyword string, bound *big.Rat) bool {
	return (keyword == "minItems" || keyword == "minProperties" || keyword == "minLength") && bound.Sign() == 0
}

// compareClosed finds objects that allow fewer names.
func (c *comparer) compareClosed(at string, before, after map[string]any) {
	for _, keyword := range []string{"additionalProperties", "unevaluatedProperties"} {
		if after[keyword] != false {
			continue
		}
		if before[keyword] != false {
			c.add(at, "%s became false", keyword)
			continue
		}
		is := objectAt(after, "properties")
		for _, name := range slices.Sorted(maps.Keys(objectAt(before, "properties"))) {
			if _, ok := is[name]; !ok && after["patternProperties"] == nil && keyword == "additionalProperties" {
				c.add(at, "%s is not allowed any more", name)
			}
		}
	}
}

// values returns the values that enum or const allow, and whether there is one of them.
func values(s map[string]any) ([]any, bool) {
	if list, ok := s["enum"].([]any); ok {
		return list, true
	}
	value, ok := s["const"]
	return []any{value}, ok
}

// listAt returns the items of a keyword that has one value or several.
func listAt(s map[string]any, keyword string) []any {
	switch value := s[keyword].(type) {
	case []any:
		return value
	case string:
		return []any{value}
	}
	return nil
}

func objectAt(s map[string]any, keyword string) map[string]any {
	object, _ := s[keyword].(map[string]any)
	return object
}

func rational(v any) (*big.Rat, bool) {
	number, ok := v.(json.Number)
	if !ok {
		return nil, false
	}
	return new(big.Rat).SetString(string(number))
}

func words(list []any) string {
	all := make([]string, len(list))
	for i, v := range list {
		all[i] = fmt.Sprint(v)
	}
	return strings.Join(all, " or ")
}

// annotations are the keywords that allow and refuse nothing.
var annotations = []string{"title", "description", "$comment", "examples", "default", "deprecated", "readOnly", "writeOnly", "$id"}

// bare returns a schema without its annotations.
func bare(s any) any {
	switch s := s.(type) {
	case map[string]any:
		left := map[string]any{}
		for keyword, value := range s {
			switch {
			case keyword == "properties" || keyword == "$defs" || keyword == "definitions":
				left[keyword] = bareMembers(value) // its keys are names, such as title
			case !slices.Contains(annotations, keyword):
				left[keyword] = bare(value)
			}
		}
		return left
	case []any:
		left := make([]any, len(s))
		for i, value := range s {
			left[i] = bare(value)
		}
		return left
	}
	return s
}

func bareMembers(value any) any {
	members, ok := value.(map[string]any)
	if !ok {
		return value
	}
	left := map[string]any{}
	for name, s := range members {
		left[name] = bare(s)
	}
	return left
}
