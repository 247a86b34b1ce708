package web

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"mailboxd/envelope"
	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/cli/view"
	"mailboxd/internal/decisions/task"
)

// functions are what templates can call.
var functions = template.FuncMap{
	"since":    func(t, now time.Time) string { return term.Age(now.Sub(t)) },
	"clock":    clock,
	"stamp":    func(t time.Time) string { return term.Stamp(t) },
	"iso":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"cut":      func(n int, text string) string { return term.Cut(strings.Join(strings.Fields(text), " "), n) },
	"taskURL":  taskURL,
	"state":    view.StateOf,
	"tone":     toneOf,
	"number":   func(n int) string { return number(int64(n)) },
	"money":    money,
	"join":     strings.Join,
	"query":    url.QueryEscape,
	"segment":  segment,
	"dict":     dict,
	"subject":  view.Subject,
	"name":     shortName,
	"agent":    agentName,
	"now":      time.Now,
	"pages":    func() []tab { return tabs },
	"periods":  func() []string { return []string{"1h", "24h", "7d", "30d"} },
	"place":    func(uri string) string { return strings.TrimPrefix(uri, "file://") },
	"add":      func(a, b int) int { return a + b },
	"date":     func(t time.Time) string { return t.Local().Format("Monday, 2 January") },
	"sentence": sentence,
	"scripts":  func(page string) []string { return scripts[page] },
	"ofTask":   func(page string) bool { return slices.Contains(taskPages, page) },
	"indent":   func(depth int) string { return strings.Repeat("· ", depth) },
}

// scripts are what a page needs beside app.js, by the name of its template.
var scripts = map[string][]string{"task": {"comments"}, "decision": {"passkey"}, "passkey": {"passkey"}}

// taskPages are the templates of pages about one task, which need more styles than lists.
var taskPages = []string{"task", "decision", "edit", "send", "changed", "run", "thread"}

// A tab is a link at the top of each page.
type tab struct {
	URL, Title string
	names      []string // of the templates below it
}

// Has reports whether a template is below the link.
func (t tab) Has(name string) bool { return slices.Contains(t.names, name) }

var tabs = []tab{
	{"/", "Now", []string{"now", "decision"}},
	{"/tasks", "Tasks", []string{"tasks", "task", "run", "thread", "send", "edit"}},
	{"/agents", "Agents", []string{"agents"}},
	{"/routing", "Routing", []string{"routing", "route"}},
	{"/budgets", "Budgets", []string{"budgets"}},
	{"/events", "Events", []string{"events"}},
}

// dict makes a map of keys and values, for templates with more than one argument.
func dict(pairs ...any) map[string]any {
	all := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		all[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return all
}

// taskURL is the path of something about a task.
func taskURL(id envelope.ID, rest ...string) string {
	return "/tasks/" + segment(string(id)) + strings.Join(rest, "")
}

// dot stands for the id "." in a path. Browsers drop a segment ".", and "%2E" too. No id has "..".
const dot = "..."

// segment is an id in a path; idOf reads it.
func segment(id string) string {
	if id == "." {
		return dot
	}
	return url.PathEscape(id)
}

// idOf returns the id in the path of a request.
func idOf(r *http.Request) string {
	if id := r.PathValue("id"); id != dot {
		return id
	}
	return "."
}

// sentence makes a sentence of an error.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(text[size:], ".") + "."
}

// shortName is the name of a task in a list.
func shortName(t client.Task) string {
	if t.ShortID != "" {
		return string(t.ShortID)
	}
	return string(t.ID)
}

// agentName is the agent of a task. A task without one waits for the choice of its agent.
func agentName(id string) string {
	if id == envelope.Everybody {
		return "any agent"
	}
	return id
}

// toneOf is the colour of a state: a class of the style sheet.
func toneOf(t client.Task) string {
	switch t.State {
	case task.Running, task.Waiting:
		return "run"
	case task.Held, task.Review:
		return "wait"
	case task.Done:
		switch t.Status {
		case envelope.OK:
			return "ok"
		case envelope.Partial:
			return "wait"
		}
		return "bad"
	}
	return "idle"
}

// clock formats a time, with the day unless it is today.
func clock(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	t = t.Local()
	if t.Format(time.DateOnly) == now.Local().Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format("2 Jan 15:04")
}

// number writes a number with commas, as 12,345.
func number(n int64) string {
	text := fmt.Sprint(n)
	if n < 0 || len(text) < 4 {
		return text
	}
	var groups []string
	for len(text) > 3 {
		groups = append([]string{text[len(text)-3:]}, groups...)
		text = text[:len(text)-3]
	}
	return text + "," + strings.Join(groups, ",")
}

// money writes cents as dollars.
func money(cents int64) string { return fmt.Sprintf("$%d.%02d", cents/100, cents%100) }
