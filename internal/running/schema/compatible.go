package schema

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A prover shows that a schema allows every document that an earlier one allows. It only says so of what it can show:
// each keyword of the later schema has to follow from those of the earlier one.
type prover struct {
	pair           // what is known holds, unless another place fails
	sameParts bool // both have the same definitions
}

// provesCompatible reports whether after surely allows what before allows.
func provesCompatible(before, after any) bool {
	p := prover{pair{before, after, map[string]bool{}}, true}
	was, is := objectOf(before), objectOf(after)
	for _, keyword := range []string{"$schema", "$id"} {
		if !reflect.DeepEqual(was[keyword], is[keyword]) {
			return false // other keywords may have another meaning, and references another target
		}
	}
	for keyword, value := range is {
		if mentions(value, "$id") || mentions(was[keyword], "$id") {
			return false // references are about parts of a part there
		}
	}
	for _, keyword := range []string{"$defs", "definitions"} {
		if !reflect.DeepEqual(bareMembers(was[keyword]), bareMembers(is[keyword])) || leavesDefinitions(is[keyword]) {
			p.sameParts = false
		}
	}
	return p.covers(before, after)
}

// covers reports whether after allows what before allows, at one place of a document.
func (p *prover) covers(before, after any) bool {
	before, after, known := p.resolve(before, after)
	later, ok := after.(map[string]any)
	if known || before == false || !ok {
		return known || before == false || after == true
	}
	earlier := objectOf(before)
	if earlier["$ref"] != nil && len(later) > 0 {
		return p.equal(before, after) // older drafts ignore the keywords beside a reference
	}
	for keyword := range later {
		if !p.follows(keyword, earlier, later) {
			return false
		}
	}
	return true
}

// follows reports whether what a keyword demands follows from an earlier schema.
func (p *prover) follows(keyword string, before, after map[string]any) bool {
	if _, bounded := bounds[keyword]; bounded {
		return boundFollows(keyword, before, after)
	}
	switch keyword {
	case "$defs", "definitions", "$schema":
		return true
	case "required":
		return containsAll(listAt(before, keyword), listAt(after, keyword))
	case "type":
		was, is := listAt(before, keyword), listAt(after, keyword)
		return len(was) > 0 && !slices.ContainsFunc(was, func(one any) bool { return !hasType(is, one) })
	case "enum", "const":
		was, had := values(before)
		is := []any{after[keyword]}
		if keyword == "enum" {
			is = listAt(after, keyword)
		}
		return had && containsAll(is, was)
	case "$ref", "$dynamicRef", "$recursiveRef":
		return p.equal(map[string]any{keyword: before[keyword]}, map[string]any{keyword: after[keyword]})
	case "properties":
		return p.propertiesFollow(before, after)
	case "additionalProperties":
		return p.othersFollow(before, after)
	case "items":
		return before["prefixItems"] == nil && after["prefixItems"] == nil && isSchema(before[keyword]) && isSchema(after[keyword]) &&
			p.covers(schemaAt(before, keyword), after[keyword])
	case "contains", "minContains", "maxContains":
		return p.same("contains", before, after) && p.same("minContains", before, after) && p.same("maxContains", before, after)
	case "unevaluatedProperties", "unevaluatedItems", "additionalItems", "prefixItems":
		return p.equal(before, after) // they depend on the keywords beside them
	}
	return slices.Contains(annotations, keyword) || p.same(keyword, before, after)
}

// same reports whether a keyword demands the same in both.
func (p *prover) same(keyword string, before, after map[string]any) bool {
	was, had := before[keyword]
	is, has := after[keyword]
	return had == has && p.equal(was, is)
}

// equal reports whether two values demand the same. Those with references do where both schemas have the same definitions.
func (p *prover) equal(before, after any) bool {
	return reflect.DeepEqual(bare(before), bare(after)) && (p.sameParts && !leavesDefinitions(after) || !mentions(after, refs...))
}

func boundFollows(keyword string, before, after map[string]any) bool {
	is, has := rational(after[keyword])
	was, had := rational(before[keyword])
	switch {
	case !has:
		return before[keyword] != nil && reflect.DeepEqual(before[keyword], after[keyword]) // of an old draft: true or false
	case !had || isNoBound(keyword, is):
		return isNoBound(keyword, is)
	case bounds[keyword]:
		return is.Cmp(was) >= 0
	}
	return is.Cmp(was) <= 0
}

// propertiesFollow reports whether each property that after describes fits what before allowed there.
func (p *prover) propertiesFollow(before, after map[string]any) bool {
	was, is := objectAt(before, "properties"), objectAt(after, "properties")
	for name, later := range is {
		earlier, ok := was[name]
		if !ok && before["patternProperties"] == nil {
			earlier = schemaAt(before, "additionalProperties")
		} else if !ok {
			earlier = true
		}
		if !p.covers(earlier, later) {
			return false
		}
	}
	return true
}

// othersFollow reports whether the properties that after doesn't name fit what before allowed there.
func (p *prover) othersFollow(before, after map[string]any) bool {
	if before["patternProperties"] != nil || after["patternProperties"] != nil {
		return p.same("patternProperties", before, after) && p.same("properties", before, after) && p.same("additionalProperties", before, after)
	}
	others := after["additionalProperties"]
	was, is := objectAt(before, "properties"), objectAt(after, "properties")
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, named := is[name]; !named && !p.covers(was[name], others) {
			return false
		}
	}
	return p.covers(schemaAt(before, "additionalProperties"), others)
}

// schemaAt returns the schema of a keyword; without it, everything is allowed.
func schemaAt(s map[string]any, keyword string) any {
	if value, ok := s[keyword]; ok {
		return value
	}
	return true
}

// isSchema reports whether a value is a schema, or missing.
func isSchema(v any) bool {
	_, isList := v.([]any)
	return !isList
}

func objectOf(s any) map[string]any {
	object, _ := s.(map[string]any)
	return object
}

func containsAll(list, some []any) bool {
	return !slices.ContainsFunc(some, func(one any) bool {
		return !slices.ContainsFunc(list, func(v any) bool { return reflect.DeepEqual(v, one) })
	})
}

// refs are the keywords that refer to another part.
var refs = []string{"$ref", "$dynamicRef", "$recursiveRef"}

// mentions reports whether one of some keywords is in a part of a schema.
func mentions(s any, keywords ...string) bool {
	return has(s, func(keyword string, _ any) bool { return slices.Contains(keywords, keyword) })
}

// leavesDefinitions reports whether a reference in a part of a schema leads elsewhere than to the definitions of the schema.
func leavesDefinitions(s any) bool {
	return has(s, func(keyword string, value any) bool {
		ref, _ := value.(string)
		return slices.Contains(refs, keyword) && !strings.HasPrefix(ref, "#/$defs/") && !strings.HasPrefix(ref, "#/definitions/")
	})
}

// has reports whether a member is in a part of a schema.
func has(s any, is func(keyword string, value any) bool) bool {
	switch s := s.(type) {
	case map[string]any:
		for keyword, value := range s {
			if is(keyword, value) || has(value, is) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(s, func(value any) bool { return has(value, is) })
	}
	return false
}
