package config

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// variableOf returns the variable that sets a key.
func variableOf(key string) string {
	if key == "root" {
		return "AINL_AGENT_ROOT"
	}
	return "MAILBOXD_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// environment checks the variables that set keys, and the names of the others. A mistaken
// value is replaced by the default.
func (r *reading) environment(v *viper.Viper) {
	standard := viper.New()
	defaults(standard)
	var names []string
	for _, key := range knownKeys() {
		if strings.Contains(key, "[]") {
			continue
		}
		name := variableOf(key)
		names = append(names, name)
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
		if problem := r.variableProblem(n, key); problem != "" {
			r.refuseVariable(key, "%s: %s", name, problem)
			v.Set(key, standard.Get(key))
		}
	}
	sections := sectionsOf(knownKeys())
	for _, entry := range os.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "MAILBOXD_") || strings.HasPrefix(name, "MAILBOXD_FAULT") || value == "" || slices.Contains(names, name) {
			continue
		}
		if key := strings.ToLower(strings.TrimPrefix(name, "MAILBOXD_")); sections[key] {
			r.refuseVariable(key, "%s: a variable cannot hold a section or a list of entries; unset it, and write them in the file", name)
			continue
		}
		nearest := slices.MinFunc(names, func(a, b string) int { return distance(name, a) - distance(name, b) })
		if name == "MAILBOXD_ROOT" {
			nearest = variableOf("root")
		}
		r.mistakes = append(r.mistakes, Mistake{Effect: Warns, Message: fmt.Sprintf("%s sets no key; did you mean %s?", name, nearest)})
	}
}

func (r *reading) refuseVariable(key, format string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{Key: key, Message: fmt.Sprintf(format, args...)})
	r.tree.broken[key] = true
}

// variableProblem says why the value of a variable does not suit its key.
func (r *reading) variableProblem(n *yaml.Node, key string) string {
	want := reflect.TypeFor[Config]()
	for name := range strings.SplitSeq(key, ".") {
		if want = fieldsOf(want)[name]; want == nil {
			return ""
		}
	}
	if want.Kind() == reflect.Slice {
		return "" // words between commas
	}
	return scalarProblem(n, want)
}
