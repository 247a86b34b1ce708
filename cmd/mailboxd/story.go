package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/client"
	"mailboxd/internal/term"
)

// members are the members of an event in the order in which they are told, each
// with the words around it; "" leaves it out.
var members = []struct{ name, words string }{
	{"who", "by %s"}, {"by", "by %s"}, {"of", "of %s"}, {"approver", "of %s"}, {"overseer", "%s"}, {"task", "as %s"}, {"round", "round %s"}, {"stage", "(%s)"},
	{"child", "%s"}, {"parent", "for %s"}, {"reserved", "%s reserved"}, {"spent", "%s spent"}, {"accounts", "of %s"},
	{"file", "from %s"}, {"offset", "at byte %s"},
	{"held", "held for %s"}, {"reasons", "for %s"}, {"attempt", "attempt %s"}, {"pct", "%s %%"},
	{"status", "%s"}, {"error", "(%s)"}, {"exit_code", "exit %s"}, {"took_ms", "after %s"}, {"until", "until %s"},
	{"unknown_runs", "with directories of runs that the ledger does not know: %s"},
	{"kept", "kept as %s"}, {"written", "written %s"}, {"reason", "because %s"}, {"why", "because %s"}, {"faults", "because %s"},
	{"note", "“%s”"}, {"message", "“%s”"}, {"words", "“%s”"}, {"warnings", "with the warning %s"},
	{"hash", ""}, {"run_id", ""}, {"digest", ""},
}

// retell tells one event.
func retell(e client.Event) string {
	var particulars []string
	if told := e.Kind.Short(); told != "" {
		particulars = append(particulars, told)
	}
	data := dataOf(e.Data)
	for _, n := range members {
		value, ok := data[n.name]
		delete(data, n.name)
		if ok && n.words != "" {
			particulars = append(particulars, fmt.Sprintf(n.words, spoken(n.name, value)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		particulars = append(particulars, term.OneLine(name)+" "+spoken(name, data[name]))
	}
	return unlisted.Replace(strings.Join(particulars, ", "))
}

// unlisted takes the comma away before what is no new thought.
var unlisted = strings.NewReplacer(", (", " (", ", of ", " of ")

// dataOf is what an event says besides its kind, which may be nothing.
func dataOf(event jsontext.Value) map[string]any {
	data := map[string]any{}
	_ = json.Unmarshal(event, &data) // an event without data says nothing more
	return data
}

// spoken shows a value of an event to a person.
func spoken(name string, value any) string {
	switch v := value.(type) {
	case []any:
		words := make([]string, len(v))
		for i, each := range v {
			words[i] = spoken(name, each)
		}
		return strings.Join(words, "; ")
	case float64:
		if name == "took_ms" {
			return (time.Duration(v) * time.Millisecond).String()
		}
		return fmt.Sprintf("%.0f", v)
	case map[string]any:
		var words []string
		for _, each := range slices.Sorted(maps.Keys(v)) {
			words = append(words, spoken(each, v[each])+" "+strings.ReplaceAll(term.OneLine(each), "_", " "))
		}
		return strings.Join(words, " and ")
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			return term.Stamp(at)
		}
		return term.OneLine(v)
	}
	return term.OneLine(fmt.Sprint(value))
}
