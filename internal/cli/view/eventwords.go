package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
)

// eventFields are the known fields of events in the order of a description, each with
// the words around it; "" omits it.
var eventFields = []struct{ name, words string }{
	{"who", "by %s"}, {"by", "by %s"}, {"of", "of %s"}, {"approver", "of %s"}, {"overseer", "%s"}, {"task", "as %s"}, {"round", "round %s"}, {"stage", "(%s)"},
	{"selected", "%s"}, {"child", "%s"}, {"parent", "for %s"}, {"reserved", "%s reserved"}, {"spent", "%s spent"}, {"accounts", "of %s"},
	{"kid", "signed with the key %s"},
	{"file", "from %s"}, {"offset", "at byte %s"},
	{"held", "held for %s"}, {"reasons", "for %s"}, {"attempt", "attempt %s"}, {"pct", "%s %%"},
	{"status", "%s"}, {"error", "(%s)"}, {"exit_code", "exit %s"}, {"took_ms", "after %s"}, {"until", "until %s"},
	{"unknown_runs", "with directories of runs that the ledger does not know: %s"},
	{"kept", "kept as %s"}, {"written", "written %s"}, {"reason", "because %s"}, {"why", "because %s"}, {"faults", "because %s"},
	{"count", "%s in all"}, {"hosts", "%s"}, {"note", "“%s”"}, {"message", "“%s”"}, {"words", "“%s”"}, {"warnings", "with the warning %s"},
	{"hash", ""}, {"run_id", ""}, {"digest", ""}, {task.PatchDigest, ""}, {task.ResultDigest, ""}, {"signature", ""}, {"expires", ""},
}

// EventWords describes an event in words.
func EventWords(e client.Event) string { return describe(e) }

// describe describes an event.
func describe(e client.Event) string {
	var particulars []string
	if notified := e.Kind.Short(); notified != "" {
		particulars = append(particulars, notified)
	}
	data := EventData(e.Data)
	if e.Kind == task.KindMessageReceived {
		delete(data, "message") // its number in the ledger
	}
	if e.Kind == task.KindRoutingDecided || e.Kind == task.KindRoutingFailed {
		maps.DeleteFunc(data, func(name string, _ any) bool { return name != "selected" && name != "reason" }) // see route explain
	}
	for _, n := range eventFields {
		value, ok := data[n.name]
		delete(data, n.name)
		if ok && n.words != "" {
			particulars = append(particulars, fmt.Sprintf(n.words, formatValue(n.name, value)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		particulars = append(particulars, term.OneLine(name)+" "+formatValue(name, data[name]))
	}
	return joiners.Replace(strings.Join(particulars, ", "))
}

// joiners removes commas before parentheses and "of".
var joiners = strings.NewReplacer(", (", " (", ", of ", " of ")

// EventData decodes the data of an event; it is empty for an event without data.
func EventData(event jsontext.Value) map[string]any {
	data := map[string]any{}
	_ = json.Unmarshal(event, &data) // it may be empty
	return data
}

// unitWords are the words for the names of amounts.
var unitWords = strings.NewReplacer("usd_cents", "US cents", "_", " ")

// formatValue formats a value of an event.
func formatValue(name string, value any) string {
	switch v := value.(type) {
	case []any:
		words := make([]string, len(v))
		for i, each := range v {
			words[i] = formatValue(name, each)
		}
		return strings.Join(words, "; ")
	case float64:
		if name == "took_ms" {
			return (time.Duration(v) * time.Millisecond).String()
		}
		return fmt.Sprintf("%.0f", v)
	case map[string]any:
		if host, why := v["host"], v["why"]; host != nil && why != nil {
			return formatValue("", host) + " (" + formatValue("", why) + ")"
		}
		var words []string
		for _, each := range slices.Sorted(maps.Keys(v)) {
			words = append(words, formatValue(each, v[each])+" "+unitWords.Replace(term.OneLine(each)))
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
