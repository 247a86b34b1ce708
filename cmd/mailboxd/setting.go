package main

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A setting is one key of the configuration in force.
type setting struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	From  string `json:"from"` // default, file, environment or flag
}

// origins say where the values of a configuration came from.
type origins struct {
	file   string // "" for none
	inFile func(key string) bool
	given  []string // keys of list entries among them; what entries leave out is a default
	root   string   // the flag
}

// of says where the value of a key came from, by the order of loadConfig.
func (o origins) of(key string) string {
	variable := "MAILBOXD_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
	if key == "root" {
		variable = "AINL_AGENT_ROOT"
	}
	switch {
	case key == "root" && o.root != "":
		return "flag"
	case os.Getenv(variable) != "":
		return "environment"
	case strings.Contains(key, "[") && slices.Contains(o.given, key), !strings.Contains(key, "[") && o.inFile(key):
		return "file"
	}
	return "default"
}

// settings lists every key of the configuration with its value, in the order
// of the example.
func (c config) settings(from origins) []setting {
	c.Agents = c.written
	list := settingsOf(reflect.ValueOf(c), "")
	for i := range list {
		list[i].From = from.of(list[i].Key)
	}
	return list
}

func settingsOf(v reflect.Value, prefix string) []setting {
	var list []setting
	for i := range v.NumField() {
		name, value := v.Type().Field(i).Tag.Get("mapstructure"), v.Field(i)
		switch {
		case name == "":
		case name == ",remain":
			for _, control := range scalarControls() {
				mode := value.MapIndex(reflect.ValueOf(string(control)))
				list = append(list, setting{Key: prefix + string(control), Value: mode.Interface()})
			}
		case value.Kind() == reflect.Pointer && value.Type().Elem().Kind() == reflect.Struct && !value.IsNil():
			list = append(list, settingsOf(value.Elem(), prefix+name+".")...)
		case value.Kind() == reflect.Struct:
			list = append(list, settingsOf(value, prefix+name+".")...)
		case value.Kind() == reflect.Slice && value.Len() > 0 && value.Type().Elem().Kind() == reflect.Struct:
			for n := range value.Len() {
				list = append(list, settingsOf(value.Index(n), fmt.Sprintf("%s%s[%d].", prefix, name, n))...)
			}
		default:
			list = append(list, setting{Key: prefix + name, Value: shown(name, value.Interface())})
		}
	}
	return list
}

// shown is a value as it is written in a configuration. What an environment
// is set to may be a secret.
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
