package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A Setting is one key with its value and origin.
type Setting struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	From  string `json:"from"` // default, file, environment or flag

	raw any // as it is in force, with secrets
}

// Origins are the origins of all values of a configuration.
type Origins struct {
	File   string // "" for none
	inFile func(key string) bool
	given  []string // keys of list entries among them; what entries leave out is a default
	root   string   // the flag
}

// of returns the origin of the value of a key, in the order of Load.
func (o Origins) of(key string) string {
	switch {
	case key == "root" && o.root != "":
		return "flag"
	case os.Getenv(variableOf(key)) != "":
		return "environment"
	case strings.Contains(key, "[") && slices.Contains(o.given, key), !strings.Contains(key, "[") && o.inFile(key):
		return "file"
	}
	return "default"
}

// Settings lists every key with its value, in the order of the example.
func (c Config) Settings(from Origins) []Setting {
	c.Agents = c.written
	list := settingsOf(reflect.ValueOf(c), "")
	for i := range list {
		list[i].From = from.of(list[i].Key)
	}
	return list
}

func settingsOf(v reflect.Value, prefix string) []Setting {
	var list []Setting
	for i := range v.NumField() {
		name, value := v.Type().Field(i).Tag.Get("mapstructure"), v.Field(i)
		switch {
		case name == "":
		case name == ",remain":
			for _, control := range scalarControls() {
				mode := value.MapIndex(reflect.ValueOf(string(control)))
				list = append(list, Setting{Key: prefix + string(control), Value: mode.Interface(), raw: mode.Interface()})
			}
		case value.Type() == reflect.TypeFor[*Worktree]():
			list = append(list, settingsOfWorktree(value.Interface().(*Worktree), prefix+name)...)
		case value.Kind() == reflect.Pointer && value.Type().Elem().Kind() == reflect.Struct && !value.IsNil():
			list = append(list, settingsOf(value.Elem(), prefix+name+".")...)
		case value.Kind() == reflect.Struct:
			list = append(list, settingsOf(value, prefix+name+".")...)
		case value.Kind() == reflect.Slice && value.Len() > 0 && value.Type().Elem().Kind() == reflect.Struct:
			for n := range value.Len() {
				list = append(list, settingsOf(value.Index(n), fmt.Sprintf("%s%s[%d].", prefix, name, n))...)
			}
		default:
			list = append(list, Setting{Key: prefix + name, Value: shown(name, value.Interface()), raw: value.Interface()})
		}
	}
	return list
}

// shown formats a value as in a configuration file. It hides the values of an
// environment, which may be secret.
func shown(name string, value any) any {
	switch v := value.(type) {
	case time.Duration:
		return v.String()
	case []string:
		switch {
		case name == "tools" && v == nil:
			return nil // which is not the same as no tools
		case name != "env":
			return v
		}
		masked := slices.Clone(v)
		for i, entry := range masked {
			if key, secret, _ := strings.Cut(entry, "="); secret != "" {
				masked[i] = key + "=***"
			}
		}
		return masked
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.Slice && v.Len() == 0 {
		return []string{} // a list without entries, whatever they would be
	}
	return value
}
