package config

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// knownKeys lists every configuration key, as "limits.queue" and
// "agents[].exec.command".
func knownKeys() []string { return keysOf(reflect.TypeFor[Config](), "") }

func keysOf(t reflect.Type, prefix string) []string {
	var keys []string
	for i := range t.NumField() {
		name := t.Field(i).Tag.Get("mapstructure")
		if name == "" {
			continue
		}
		switch field := t.Field(i).Type; {
		case name == ",remain":
			for _, control := range scalarControls() {
				keys = append(keys, prefix+string(control))
			}
		case field.Kind() == reflect.Struct:
			keys = append(keys, keysOf(field, prefix+name+".")...)
		case field.Kind() == reflect.Pointer && field.Elem().Kind() == reflect.Struct:
			keys = append(keys, prefix+name)
			keys = append(keys, keysOf(field.Elem(), prefix+name+".")...)
		case field.Kind() == reflect.Slice && field.Elem().Kind() == reflect.Struct:
			keys = append(keys, keysOf(field.Elem(), prefix+name+"[].")...)
		default:
			keys = append(keys, prefix+name)
		}
	}
	return keys
}

var index = regexp.MustCompile(`\[\d+\]`)

// nearestKey returns the known key or section whose name is most like an unknown one: of all names
// first, then of the names without their sections. It is "" if none is alike.
func nearestKey(known []string, key string) string {
	plain := index.ReplaceAllString(key, "[]")
	known = slices.AppendSeq(slices.Clone(known), maps.Keys(sectionsOf(known)))
	slices.Sort(known)
	whole := func(name string) string { return name }
	for _, part := range []func(string) string{whole, lastName} {
		by := func(name string) int { return distance(part(plain), part(name)) }
		nearest := slices.MinFunc(known, func(a, b string) int { return by(a) - by(b) })
		if by(nearest) <= min(3, max(1, len(lastName(plain))/2)) && nearest != around(plain) {
			return nearest
		}
	}
	return ""
}

// lastName is the name of a key in its section.
func lastName(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// sectionsOf is the set of what has keys in it: "limits", "agents" and
// "agents[].exec".
func sectionsOf(keys []string) map[string]bool {
	sections := map[string]bool{}
	for _, key := range keys {
		for at := strings.LastIndexByte(key, '.'); at >= 0; at = strings.LastIndexByte(key, '.') {
			key = key[:at]
			sections[strings.TrimSuffix(key, "[]")] = true
		}
	}
	return sections
}

// distance is the Levenshtein distance between two keys.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
