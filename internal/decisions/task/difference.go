package task

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxDifferences limits the parts of a difference.
const maxDifferences = 12

// Difference says in one line in which members two JSON objects differ, as Differences lists them;
// "" if they don't differ.
func Difference(was, is jsontext.Value) string {
	parts := Differences(was, is)
	if n := len(parts) - maxDifferences; n > 0 {
		parts = append(parts[:maxDifferences], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(parts, "; ")
}

// HasFormat reports whether a plan has a format. Plans of earlier versions have none: they don't
// cover the content of programs.
func HasFormat(plan jsontext.Value) bool {
	var of struct {
		Format int `json:"format"`
	}
	err := json.Unmarshal(plan, &of, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	return err == nil && of.Format > 0
}

// Differences lists the members in which two JSON objects differ, in the order of their names, as
// "name: old -> new". A member of a member has a name with a dot. A value is JSON, "none" if the
// member is absent, and is shortened. It returns nothing for what is no object.
func Differences(was, is jsontext.Value) []string {
	before, after := members("", was), members("", is)
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(before[name], after[name]) {
			all = append(all, fmt.Sprintf("%s: %s -> %s", name, shortValue(before[name]), shortValue(after[name])))
		}
	}
	return all
}

// members returns the members of an object that are no objects, by their whole names, as canonical
// JSON.
func members(prefix string, object jsontext.Value) map[string]jsontext.Value {
	all, own := map[string]jsontext.Value{}, map[string]jsontext.Value{}
	if object.Kind() != '{' || json.Unmarshal(object, &own, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) != nil {
		return all
	}
	for name, value := range own {
		if value.Kind() == '{' {
			maps.Copy(all, members(prefix+name+".", value))
			continue
		}
		if err := value.Canonicalize(jsontext.AllowInvalidUTF8(true)); err == nil {
			all[prefix+name] = value
		}
	}
	return all
}

// maxShown is how many bytes of a value are shown.
const maxShown = 100

var digestValue = regexp.MustCompile(`^"[0-9a-f]{64}"$`)

// shortValue shortens a value: a digest to the digits that people compare.
func shortValue(value jsontext.Value) string {
	text := string(value)
	switch {
	case value == nil:
		return "none"
	case digestValue.MatchString(text):
		return text[1 : 1+ShortDigest]
	case len(text) > maxShown:
		return fmt.Sprintf("%.*s... (%d bytes)", maxShown, text, len(text))
	}
	return text
}

// ShortDigest is how many digits of a digest are shown to people, and how many at least name it.
// With 16 digits, making another content with the same ones takes 2^64 attempts.
const ShortDigest = 16
