package config

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	configPage = "../../../docs/configuration.md"
	madeOfKeys = "<!-- What follows is made from config.example.yaml and the code: " +
		"go test ./internal/operating/config -run ConfigurationPage -update -->\n"
	exampleFile = "../../../config.example.yaml"
)

func TestTheConfigurationPageSaysWhatTheKeysAre(t *testing.T) {
	text, err := os.ReadFile(configPage)
	if err != nil {
		t.Fatal(err)
	}
	words, _, _ := strings.Cut(string(text), madeOfKeys)
	want := words + madeOfKeys + keyTables(t)
	if *update {
		if err := os.WriteFile(configPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !*update && string(text) != want {
		t.Errorf("%s does not say what the code does; run: go test ./internal/operating/config -run ConfigurationPage -update", configPage)
	}
}

// A keyNote is what config.example.yaml says of a key.
type keyNote struct{ key, why string }

// hiddenKey is a key of a section that is not there by default, with what is said of it.
var hiddenKey = regexp.MustCompile(`^ +# {2,}(?:- )?([a-z0-9_]+):.* # (.*)$`)

var keyLine = regexp.MustCompile(`^( *)(- )?([a-z0-9_]+):(.*)$`)

// keyNotes reads the example: the comment above a key, and the one behind it.
func keyNotes(t *testing.T) (notes []keyNote) {
	t.Helper()
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	var above, path []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if named := hiddenKey.FindStringSubmatch(line); named != nil && len(notes) > 0 {
			notes[len(notes)-1].why += fmt.Sprintf(" `%s`: %s.", named[1], named[2])
			continue
		}
		if words, ok := strings.CutPrefix(strings.TrimSpace(line), "#"); ok {
			above = append(above, strings.TrimSpace(words))
			continue
		}
		named := keyLine.FindStringSubmatch(line)
		if named == nil {
			above = nil // an empty line ends what is said of nothing
			continue
		}
		depth := (len(named[1]) + len(named[2])) / 2
		name := named[3]
		if depth > 0 && named[2] != "" || depth > 1 && path[0] == "agents[]" {
			depth-- // the dash of a list is no level
		}
		if depth == 0 && name == "agents" {
			name = "agents[]"
		}
		path = append(path[:depth:depth], name)
		_, behind, _ := strings.Cut(named[4], " # ")
		why := strings.TrimSpace(strings.Join(append([]string{strings.TrimSpace(behind)}, above...), " "))
		notes, above = append(notes, keyNote{strings.Join(path, "."), why}), nil
	}
	return notes
}

// keyTables is a table for each section of the configuration. Every key of the
// code is in one, or in the type of the list it belongs to.
func keyTables(t *testing.T) string {
	t.Helper()
	t.Setenv("AINL_AGENT_ROOT", "")
	plain, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	plain.Agents = []Entry{DefaultEntry()}
	var page strings.Builder
	var shown []string
	page.WriteString("\n## At the top\n\n" + tableHead)
	for _, note := range keyNotes(t) {
		value := valueOf(t, reflect.ValueOf(plain), note.key)
		page.WriteString(note.rows(value))
		shown = append(shown, note.key)
		if value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Struct {
			shown = append(shown, keysOf(value.Type().Elem(), note.key+"[].")...)
		}
		if value.Kind() == reflect.Pointer { // a section that need not be there: what is said of it says its keys
			shown = append(shown, keysOf(value.Type().Elem(), note.key+".")...)
		}
	}
	for _, key := range knownKeys() {
		if !slices.Contains(shown, key) {
			t.Errorf("%s has no row for %s", configPage, key)
		}
	}
	return page.String()
}

// rows is the row of a key, or the beginning of a section.
func (n keyNote) rows(value reflect.Value) string {
	name, nested := strings.TrimPrefix(n.key, "agents[]."), strings.Contains(n.key, ".")
	heading := "\n## " + strings.TrimSuffix(n.key, "[]") + "\n\n"
	if n.why != "" {
		heading += n.why + "\n\n"
	}
	switch {
	case !nested && value.Kind() == reflect.Struct:
		return heading + tableHead
	case !nested && value.Kind() == reflect.Slice:
		return heading + "A " + typeOf(n.key, value) + "; the default is none.\n"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, typeOf(n.key, value), standardOf(n.key, value), strings.ReplaceAll(n.why, "|", `\|`))
}

const tableHead = "| key | type | default | why |\n|---|---|---|---|\n"

// valueOf finds what the configuration holds for a key; an entry of a list is
// its first.
func valueOf(t *testing.T, v reflect.Value, key string) reflect.Value {
	t.Helper()
	for name := range strings.SplitSeq(key, ".") {
		if p, ok := v.Interface().(Policy); ok && p.Modes[name] != nil {
			return reflect.ValueOf(p.Modes[name])
		}
		field := slices.IndexFunc(reflect.VisibleFields(v.Type()), func(f reflect.StructField) bool {
			return f.Tag.Get("mapstructure") == strings.TrimSuffix(name, "[]")
		})
		if field < 0 {
			t.Fatalf("%s: %s is no key of the configuration", exampleFile, key)
		}
		if v = v.Field(field); strings.HasSuffix(name, "[]") {
			v = v.Index(0)
		}
	}
	return v
}

// typeOf names the type of a key in plain words.
func typeOf(key string, v reflect.Value) string {
	control, _ := strings.CutPrefix(key, "policy.")
	switch {
	case slices.Contains(scalarControlNames(), control), control == "change_window.mode":
		return "mode"
	case v.Type() == reflect.TypeFor[time.Duration]():
		return "duration"
	case v.Kind() == reflect.Struct:
		return "section"
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		return "list of entries with " + keyList(v.Type().Elem())
	case v.Type() == reflect.TypeFor[*Worktree]():
		return "true or false, or a section with " + keyList(v.Type().Elem())
	case v.Kind() == reflect.Pointer:
		return "section with " + keyList(v.Type().Elem())
	case v.Kind() == reflect.Slice:
		return "list of words"
	case v.Kind() == reflect.Bool:
		return "true or false"
	case v.CanInt():
		return "number"
	}
	return "text"
}

func keyList(section reflect.Type) string {
	var names []string
	for _, name := range keysOf(section, "") {
		names = append(names, "`"+name+"`")
	}
	return strings.Join(names, ", ")
}

func scalarControlNames() (names []string) {
	for _, control := range scalarControls() {
		names = append(names, string(control))
	}
	return names
}

// standardOf shows a default as it would be written.
func standardOf(key string, v reflect.Value) string {
	switch {
	case v.Kind() == reflect.Struct, key == "agents[].id":
		return ""
	case v.Type() == reflect.TypeFor[time.Duration]():
		text := regexp.MustCompile(`(\d+[hm])0[ms](0s)?$`).ReplaceAllString(time.Duration(v.Int()).String(), "$1")
		return "`" + text + "`"
	case v.Type() == reflect.TypeFor[*Worktree]():
		return "`false`"
	case v.Kind() == reflect.Slice && v.IsNil() && key == "agents[].tools":
		return "`null`"
	case v.Kind() == reflect.Slice && v.Len() == 0:
		return "`[]`"
	case v.Kind() == reflect.String && v.Len() > 0:
		return "`" + v.String() + "`"
	}
	text, err := json.Marshal(v.Interface())
	if err != nil {
		return err.Error()
	}
	return "`" + string(text) + "`"
}
