package config

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A tree is a configuration file as YAML nodes. Viper gets its values, and the tree knows
// where each of them is.
type tree struct {
	file     string   // as it was named
	known    []string // its keys
	listing  string   // what lists them
	root     *yaml.Node
	at       map[string]position // of keys, in lower case
	mistakes Mistakes
	broken   map[string]bool // keys whose values were taken out
}

// A position is a place in a file.
type position struct{ line, column int }

func positionOf(n *yaml.Node) position { return position{n.Line, n.Column} }

// parseTree parses a file and takes out what the configuration cannot have: unknown keys,
// repeated keys, and values of a wrong type. A text that is not YAML leaves an empty tree.
func parseTree(file string, text []byte) *tree {
	return parseTreeOf(file, text, reflect.TypeFor[Config](), "mailboxd config show lists all keys")
}

// parseTreeOf is parseTree for a file with the keys of a type. The listing says where people find them.
func parseTreeOf(file string, text []byte, keys reflect.Type, listing string) *tree {
	t := &tree{file: file, known: keysOf(keys, ""), listing: listing, at: map[string]position{}, broken: map[string]bool{}}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return t
	case err != nil:
		at, message := syntaxError(text, err)
		t.note(at, "", "%s", message)
		t.root = salvage(text)
		return t
	}
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case err == nil:
		t.note(positionOf(&second), "", "a second document begins here; a configuration is one document: remove the line ---")
	case !errors.Is(err, io.EOF):
		at, message := syntaxError(text, err)
		t.note(at, "", "%s", message)
	}
	if root := document.Content[0]; root.Kind == yaml.MappingNode {
		t.root = root
		t.section(root, "", keys)
	} else if !isNull(root) {
		t.note(positionOf(root), "", "a configuration has keys with values, such as root: /path/of/the/mailbox")
	}
	return t
}

// values returns the values of the file, without mistaken ones.
func (t *tree) values() (map[string]any, error) {
	values := map[string]any{}
	if t.root == nil {
		return values, nil
	}
	return values, t.root.Decode(&values)
}

func (t *tree) note(at position, key, format string, args ...any) {
	t.mistakes = append(t.mistakes, Mistake{File: t.file, Line: at.line, Column: at.column, Key: key, Message: fmt.Sprintf(format, args...)})
	t.broken[strings.ToLower(key)] = true
}

// find returns the position of a key, or of the nearest section around it.
func (t *tree) find(key string) position {
	for key = strings.ToLower(key); key != ""; key = around(key) {
		if at, ok := t.at[key]; ok {
			return at
		}
	}
	return position{1, 1}
}

// around returns the key of the section or list that has a key; "" for none.
func around(key string) string { return key[:max(strings.LastIndexAny(key, ".["), 0)] }

// isBroken reports whether the value of a key, or of a section around it or a key in it,
// was taken out.
func (t *tree) isBroken(key string) bool {
	key = strings.ToLower(key)
	for outer := key; outer != ""; outer = around(outer) {
		if t.broken[outer] {
			return true
		}
	}
	for inner := range t.broken {
		if strings.HasPrefix(inner, key+".") || strings.HasPrefix(inner, key+"[") {
			return true
		}
	}
	return false
}

// section checks the keys of a mapping against the fields of a type.
func (t *tree) section(n *yaml.Node, prefix string, section reflect.Type) {
	fields, seen := fieldsOf(section), map[string]position{}
	kept := n.Content[:0:0]
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if name.ShortTag() == "!!merge" {
			t.merged(value, prefix, section)
			kept = append(kept, name, value)
			continue
		}
		lower := strings.ToLower(name.Value)
		key := prefix + lower
		field, known := fields[lower]
		first, twice := seen[lower]
		switch {
		case !known:
			t.unknown(positionOf(name), prefix+name.Value)
		case twice:
			t.note(positionOf(name), key, "is there twice, first in line %d; remove one of them", first.line)
		default:
			seen[lower] = positionOf(name)
			t.at[key] = positionOf(name)
			if value.Kind == yaml.ScalarNode && !isNull(value) {
				t.at[key] = positionOf(value)
			}
			t.value(value, key, field)
			kept = append(kept, name, value)
		}
	}
	n.Content = kept
}

// merged checks the mappings that a merge key (<<) brings in.
func (t *tree) merged(n *yaml.Node, prefix string, section reflect.Type) {
	switch n = target(n); n.Kind {
	case yaml.MappingNode:
		t.section(n, prefix, section)
	case yaml.SequenceNode:
		for _, one := range n.Content {
			t.merged(one, prefix, section)
		}
	}
}

// unknown notes an unknown key with the nearest known one, which it may have been meant to be.
func (t *tree) unknown(at position, key string) {
	nearest := nearestKey(t.known, key)
	if nearest == "" {
		t.note(at, key, "no such key; %s", t.listing)
		return
	}
	t.note(at, key, "no such key; did you mean %s?", nearest)
	if slices.Contains(locations, nearest) && distance(key, nearest) <= 2 {
		t.broken[nearest] = true
	}
	if i := strings.LastIndexByte(nearest, '.'); i >= 0 && around(index.ReplaceAllString(key, "[]")) == nearest[:i] {
		t.broken[strings.ToLower(around(key)+nearest[i:])] = true
	}
}

// value checks the value of a key, and takes it out if it is of another type.
func (t *tree) value(n *yaml.Node, key string, want reflect.Type) {
	for want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	problem := asWorktree(n, want) + asArguments(n, want)
	actual := target(n)
	switch {
	case problem != "", isNull(actual):
	case want.Kind() == reflect.Struct:
		if actual.Kind == yaml.MappingNode {
			t.section(actual, key+".", want)
		} else {
			problem = "is a section: write its keys below it, indented"
		}
	case want.Kind() == reflect.Slice && actual.Kind == yaml.SequenceNode:
		t.list(actual, key, want.Elem())
	case want.Kind() == reflect.Slice && want.Elem().Kind() == reflect.Struct:
		problem = `is a list: begin each entry with "- "`
	case want.Kind() == reflect.Slice:
		problem = listProblem(actual)
	case actual.Kind != yaml.ScalarNode:
		if want.Kind() != reflect.Map {
			problem = "is one value, not a list or a section"
		}
	default:
		problem = scalarProblem(actual, want)
	}
	if problem != "" {
		t.note(positionOf(n), key, "%s", problem)
		*n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null", Line: n.Line, Column: n.Column}
	}
}

func (t *tree) list(n *yaml.Node, key string, want reflect.Type) {
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", key, i)
		t.at[at] = positionOf(item)
		if isNull(target(item)) {
			t.note(positionOf(item), at, "is empty; remove it, or write what it is")
			continue
		}
		t.value(item, at, want)
	}
}

// target follows an alias.
func target(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// fieldsOf returns the types of the keys of a section.
func fieldsOf(section reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(section) {
		switch name := field.Tag.Get("mapstructure"); name {
		case "":
		case ",remain":
			for _, control := range scalarControls() {
				fields[string(control)] = reflect.TypeFor[string]()
			}
		default:
			fields[name] = field.Type
		}
	}
	return fields
}

// listProblem says why a value is no list of words. One word without spaces is a list of one.
func listProblem(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		return "is a list, such as [one, two]"
	}
	if words := strings.FieldsFunc(n.Value, func(r rune) bool { return r == ' ' || r == '\t' }); len(words) > 1 {
		return fmt.Sprintf("is a list, not one text: write [%s]", strings.Join(slices.Collect(quoted(words)), ", "))
	}
	return ""
}

// quoted yields words as YAML has them in a list.
func quoted(words []string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, word := range words {
			if word = strings.TrimSuffix(word, ","); strings.ContainsAny(word, `,[]{}:#&*!|>'"%@`) {
				word = fmt.Sprintf("%q", word)
			}
			if !yield(word) {
				return
			}
		}
	}
}
