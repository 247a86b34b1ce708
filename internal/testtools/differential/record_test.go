package differential_test

import (
	"cmp"
	"context"
	"fmt"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A record is what could be seen after a step.
type record struct {
	step     string
	sections []section
}

// A section is a part of a record whose lines have an order. Sections have none: what
// happens to one task comes before or after what happens to another.
type section struct {
	name  string
	lines []string
}

func (r record) lines() (all []string) {
	for _, s := range r.sections {
		all = append(all, "== "+s.name)
		all = append(all, s.lines...)
	}
	return all
}

// A witness looks at a mailbox and writes down what it sees.
type witness struct {
	site    *site
	records []record
	event   int64            // the last event that was seen
	read    map[string]int64 // how far inboxes were read
	names   map[string]string
}

func newWitness(s *site) *witness {
	return &witness{site: s, read: map[string]int64{}, names: map[string]string{}}
}

// look writes down what is new since the last look.
func (w *witness) look(ctx context.Context, step, said string) error {
	inboxes, err := w.inboxes()
	if err != nil {
		return err
	}
	sections := append(output(said), inboxes...)
	if w.site.cmd != nil {
		events, err := w.events(ctx)
		if err != nil {
			return err
		}
		sections = append(sections, events...)
	}
	w.add(step, sections)
	return nil
}

// output is what a build said. What it tells of a conversation is put in an order.
func output(said string) []section {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if len(lines) == 2 && dialogue.MatchString(lines[1]) {
		return append(conversationOf("output", lines[1]), section{"output", lines[:1]})
	}
	return []section{{"output", lines}}
}

// dialogue is how a conversation begins.
var dialogue = regexp.MustCompile(`^\{"kind":"(thread|trace)"`)

// conversationOf divides a conversation by what each part is about. The order in which
// several tasks went on is free.
func conversationOf(name, text string) []section {
	var whole map[string]jsontext.Value
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		return []section{{name, []string{text}}}
	}
	var sections []section
	for member, value := range whole {
		var list []jsontext.Value
		if json.Unmarshal(value, &list) != nil {
			list = []jsontext.Value{value}
		}
		lines := make([]string, len(list))
		for i, element := range list {
			lines[i] = string(element)
		}
		sections = append(sections, grouped(name+", "+member, lines, subjectOf)...)
	}
	return sections
}

// events are the new events, those of each task by themselves.
func (w *witness) events(ctx context.Context) ([]section, error) {
	of := map[string]*section{}
	for {
		var list struct {
			Events []event `json:"events"`
		}
		if err := w.site.get(ctx, fmt.Sprintf("/v1/events/list?limit=1000&after=%d", w.event), &list); err != nil {
			return nil, err
		}
		for _, e := range list.Events {
			name := "events of " + cmp.Or(e.Task, "no task")
			if of[name] == nil {
				of[name] = &section{name: name}
			}
			of[name].lines = append(of[name].lines, fmt.Sprintf("r%d %s %s", e.Rev, e.Kind, e.Data))
			w.event = e.Seq
		}
		if len(list.Events) == 0 {
			break
		}
	}
	return collected(of), nil
}

// about finds what a line in an inbox is about. The order of lines about one thing counts.
var about = regexp.MustCompile(`"(pid|task_id)":"([^"]*)"`)

// inboxes are the new lines of all inboxes.
func (w *witness) inboxes() ([]section, error) {
	var sections []section
	paths, err := filepath.Glob(w.site.path("box/agents/*/inbox.jsonl"))
	for _, path := range paths {
		text, readErr := os.ReadFile(path)
		if readErr != nil {
			return nil, readErr
		}
		name := filepath.Base(filepath.Dir(path))
		if lines := strings.Split(string(text[w.read[name]:]), "\n"); len(lines) > 1 {
			sections = append(sections, grouped("inbox of "+name, lines[:len(lines)-1], subjectOf)...)
		}
		w.read[name] = int64(len(text))
	}
	return sections, err
}

// subjectOf finds what a line is about.
func subjectOf(line string) (subject, text string) {
	if m := about.FindStringSubmatch(line); m != nil {
		return m[2], line
	}
	return "nothing", line
}

// grouped puts lines about the same thing together, in their order.
func grouped(name string, lines []string, read func(line string) (subject, text string)) []section {
	of := map[string]*section{}
	for _, line := range lines {
		subject, text := read(line)
		key := name + " about " + subject
		if of[key] == nil {
			of[key] = &section{name: key}
		}
		of[key].lines = append(of[key].lines, text)
	}
	return collected(of)
}

func collected(of map[string]*section) (all []section) {
	for _, s := range of {
		all = append(all, *s)
	}
	return all
}

// lookAtAll writes down all that the control socket says of everything.
func (w *witness) lookAtAll(ctx context.Context) error {
	var all page
	if err := w.site.get(ctx, "/v1/tasks?limit=1000&revisions=all", &all); err != nil {
		return err
	}
	paths := []string{"/v1/accounts?day=" + time.Now().UTC().Format(time.DateOnly), "/v1/thread?id=c1", "/v1/thread?id=c2", "/v1/trace?id=trace-1", "/v1/count"}
	for _, t := range all.Tasks {
		paths = append(paths, "/v1/tasks/"+url.PathEscape(t.ID))
	}
	slices.Sort(paths)
	var sections []section
	for _, path := range slices.Compact(paths) {
		code, text, err := w.site.ask(ctx, http.MethodGet, path, "")
		if err != nil {
			return err
		}
		if dialogue.Match(text) {
			sections = append(sections, conversationOf("GET "+path, string(text))...)
			continue
		}
		sections = append(sections, section{"GET " + day.ReplaceAllString(path, "DAY"), append([]string{fmt.Sprintf("status %d", code)}, members(text)...)})
	}
	w.add("all that is known", sections)
	return nil
}

// members splits an object into lines, so that a difference shows where it is.
func members(text []byte) []string {
	value := jsontext.Value(text)
	if value.Indent(jsontext.WithIndent(" ")) != nil {
		return strings.Split(string(text), "\n")
	}
	return strings.Split(string(value), "\n")
}

// lookAtFiles writes down all files that programs of others read, and what the last daemon
// said.
func (w *witness) lookAtFiles(step, said string) error {
	sections := output(said)
	inboxes, err := w.inboxes()
	if err != nil {
		return err
	}
	for _, dir := range []string{"box", "state/history"} {
		err := filepath.WalkDir(w.site.path(dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil && dir != "box" {
				return nil // there is no history
			}
			if err != nil || entry.IsDir() {
				return err
			}
			name, _ := filepath.Rel(w.site.dir, path)
			if strings.HasPrefix(name, "box/agents/") && entry.Name() == "inbox.jsonl" || name == emptyLines {
				return nil // it was read before, or is as long as the machine is slow
			}
			text, err := os.ReadFile(path)
			sections = append(sections, section{"file " + name, fileLines(name, text)})
			return err
		})
		if err != nil {
			return err
		}
	}
	w.add(step, append(sections, inboxes...))
	return nil
}

// day is the name of a file of a day.
var day = regexp.MustCompile(`\d{4}-\d{2}-\d{2}`)

// fileLines are the lines of a file. Those of which the order is free are sorted.
func fileLines(name string, text []byte) []string {
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if strings.HasPrefix(name, "box/queues/") {
		slices.SortFunc(lines, func(a, b string) int { return strings.Compare(masked(a), masked(b)) })
	}
	if strings.HasPrefix(name, "box/results/") || strings.HasPrefix(name, "state/history/") {
		return members(text)
	}
	return lines
}

// add writes a record down, without what varies from one run to the next. Sections about
// what has an id that a build made up come last, in the order in which those ids were seen.
func (w *witness) add(step string, sections []section) {
	var named, unnamed []section
	for _, s := range sections {
		if made.MatchString(s.name) {
			unnamed = append(unnamed, s)
		} else {
			named = append(named, s)
		}
	}
	byText := func(a, b section) int { return strings.Compare(masked(a.text()), masked(b.text())) }
	slices.SortStableFunc(named, byText)
	for i, s := range named {
		named[i] = w.normalSection(s)
	}
	slices.SortStableFunc(unnamed, func(a, b section) int {
		return cmp.Or(cmp.Compare(w.number(a.name), w.number(b.name)), byText(a, b))
	})
	for _, s := range unnamed {
		named = append(named, w.normalSection(s))
	}
	w.records = append(w.records, record{step, named})
}

// number is that of the id in a text, and a large one when it was not seen yet.
func (w *witness) number(text string) int {
	number := 1 << 30
	fmt.Sscanf(w.names[made.FindString(text)], "id-%d", &number)
	return number
}

func (s section) text() string { return s.name + "\n" + strings.Join(s.lines, "\n") }

func (w *witness) normalSection(s section) section {
	normal := section{name: w.normal(s.name)}
	for _, line := range s.lines {
		if made.MatchString(s.name) || !ofRequest.MatchString(s.name) {
			line = derived.ReplaceAllString(line, `"$1":"HASH"`)
		}
		normal.lines = append(normal.lines, w.normal(line))
	}
	return normal
}

var (
	// made are ids that a build makes up.
	made = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// moment is a time.
	moment = regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]+)?(Z|[+-][0-9:]{5})|20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9:]{8}`)
	// counted are numbers that count time, processes and what has no order.
	counted = regexp.MustCompile(`"(ts|pid|seq|took_ms|wall_ms|wall_time_ms|inode|told|message)": ?[0-9]+`)
	// process is one that gave a command.
	process = regexp.MustCompile(`process [0-9]+`)
	// derived are hashes of what has ids and times in it that a build makes up.
	derived = regexp.MustCompile(`"(hash|digest|request)": ?"[0-9a-f]{12,64}"`)
	// below are the hash of a task that another task asked for, and that of an answer with
	// its times, which a person is asked about.
	below = regexp.MustCompile(`"(hash|digest)":"[0-9a-f]+"(,.*"parent"|,.*"stage":"post")`)
	// ofRequest is the name of a section in which all other hashes are those of lines.
	ofRequest = regexp.MustCompile(`^events of [a-z0-9-]+$`)
	// short is as much of an id that a build makes up as names it.
	short = regexp.MustCompile(`"short_id": ?"[0-9a-f]{4,8}(-[0-9a-f-]*)?"`)
	// result is the digest of a result, which has times.
	result = regexp.MustCompile(`"result_sha256": ?"[0-9a-f]{64}"`)
	// secret is a lease.
	secret = regexp.MustCompile(`"lease": ?"[^"]+"`)
)

// masked is a text without what varies.
func masked(text string) string {
	text = day.ReplaceAllString(moment.ReplaceAllString(text, "TIME"), "DAY")
	text = process.ReplaceAllString(text, "process N")
	text = counted.ReplaceAllString(text, `"$1":N`)
	text = below.ReplaceAllString(text, `"$1":"HASH"$2`)
	text = short.ReplaceAllString(text, `"short_id":"SHORT"`)
	text = result.ReplaceAllString(text, `"result_sha256":"HASH"`)
	text = secret.ReplaceAllString(text, `"lease":"LEASE"`)
	return made.ReplaceAllString(text, "ID")
}

// normal is a text without what varies, in which ids that were made up are numbered in
// the order in which they are seen, so that it shows where the same one occurs again.
func (w *witness) normal(text string) string {
	text = made.ReplaceAllStringFunc(text, func(id string) string {
		if w.names[id] == "" {
			w.names[id] = fmt.Sprintf("id-%d", len(w.names)+1)
		}
		return w.names[id]
	})
	return masked(text)
}
