package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"go.yaml.in/yaml/v3"

	"mailboxd/internal/running/schema"
)

// object is a JSON object; its keys are sorted when it is written.
type object = map[string]any

func TestTheSchemaSaysWhatTheKeysAre(t *testing.T) {
	want := generatedSchema(t)
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(Schema, want) {
		t.Error("schema.json does not say what the code does; run: go test ./internal/operating/config -run Schema -update")
	}
}

// generatedSchema makes the schema of the types, the defaults and config.example.yaml.
func generatedSchema(t *testing.T) []byte {
	t.Helper()
	t.Setenv("AINL_AGENT_ROOT", "")
	plain, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	plain.Agents = []Entry{DefaultEntry()}
	g := generator{t: t, plain: reflect.ValueOf(plain), notes: map[string]string{}}
	for _, note := range keyNotes(t) {
		g.notes[note.key] = note.why
	}
	root := g.section(reflect.TypeFor[Config](), "")
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "The configuration of mailboxd"
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(root); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

type generator struct {
	t     *testing.T
	plain reflect.Value // the defaults
	notes map[string]string
	bare  bool // the keys have no defaults: they are in a list, or in a section that is not there by default
}

func (g generator) section(section reflect.Type, prefix string) object {
	properties := object{}
	for name, field := range fieldsOf(section) {
		properties[name] = g.value(field, prefix+name)
	}
	return object{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
}

// value is the schema of a key.
func (g generator) value(field reflect.Type, key string) object {
	one := g.typeOf(field, key)
	why := g.notes[key]
	if why == "" {
		why = g.notes[key+"[]"]
	}
	if why != "" {
		one["description"] = why
	}
	if allowed := choicesOf(key); allowed != nil {
		one["enum"] = allowed
	}
	if standard, ok := g.standard(field, key); ok {
		one["default"] = standard
	}
	return one
}

func (g generator) typeOf(field reflect.Type, key string) object {
	switch {
	case field == reflect.TypeFor[time.Duration]():
		return object{"anyOf": []object{{"type": "string", "pattern": `^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`}, {"const": 0}}}
	case field == reflect.TypeFor[*Worktree]():
		g.bare = true
		return object{"anyOf": []object{{"type": "boolean"}, g.section(field.Elem(), key+".")}}
	case field == reflect.TypeFor[Arguments]():
		return object{"type": []string{"object", "null"}}
	case field.Kind() == reflect.Pointer:
		g.bare = true
		return g.typeOf(field.Elem(), key)
	case field.Kind() == reflect.Struct:
		return g.section(field, key+".")
	case field.Kind() == reflect.Slice && field.Elem().Kind() == reflect.Struct:
		g.bare = g.bare || key != "agents"
		item := g.section(field.Elem(), key+"[].")
		item["type"] = "object"
		if key == "agents" {
			item["required"] = []string{"id"}
		}
		return object{"type": []string{"array", "null"}, "items": item}
	case field.Kind() == reflect.Slice:
		return object{"type": []string{"array", "null"}, "items": object{"type": []string{"string", "number"}}}
	case field.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case field.Kind() == reflect.Int, field.Kind() == reflect.Int64:
		return object{"type": "integer", "minimum": 0}
	case field.Kind() == reflect.String:
		return object{"type": "string"}
	}
	g.t.Fatalf("%s: a %s has no schema", key, field)
	return nil
}

// standard is the default of a key that holds one value or a list of words.
func (g generator) standard(field reflect.Type, key string) (any, bool) {
	if g.bare || field.Kind() == reflect.Struct || field.Kind() == reflect.Pointer || key == "agents[].id" || key == "agents" {
		return nil, false
	}
	value := valueOf(g.t, g.plain, key)
	switch {
	case value.Type() == reflect.TypeFor[time.Duration]():
		return strings.Trim(standardOf(key, value), "`"), true
	case value.Kind() == reflect.Slice && value.Len() == 0:
		return []string{}, key != "agents[].tools"
	}
	return value.Interface(), true
}

// verdict holds a configuration against the schema, as an editor does.
func verdict(t *testing.T, text []byte) error {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), Schema, 0o600); err != nil {
		t.Fatal(err)
	}
	schemas, err := schema.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var values any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return err
	}
	document, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return schemas.Check("schema://config", document)
}

func TestTheExampleFollowsTheSchema(t *testing.T) {
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := verdict(t, text); err != nil {
		t.Errorf("%s: %v", exampleFile, err)
	}
}

func TestAnEditorSeesWrongKeysTypesAndWords(t *testing.T) {
	for _, name := range []string{"unknown_key", "wrong_type", "bad_enum", "not_a_section"} {
		archive, err := txtar.ParseFile("testdata/broken/" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		if err := verdict(t, archive.Files[0].Data); err == nil {
			t.Errorf("the schema allows %s", name)
		}
	}
}
