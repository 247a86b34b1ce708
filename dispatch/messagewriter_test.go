package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// A place is where a line begins.
type location struct {
	file   string
	offset int64
}

// A randomLine is a line of CLowl or CAP, and what must come of it.
type randomLine struct {
	text       string
	location   location
	fresh      bool     // no line before has its name
	requests   []ask    // each ends in a result
	about      []ask    // the messages and tasks that an answer to it may name
	may        []string // the ids of further results that it may have
	malformed  bool     // it may have a dead letter
	unreadable bool     // it must have one
	mid        string   // of a CNCL
	cancels    string   // what that names
}

// An ask is a message that asks for a task, or an answer's view of it.
type ask struct{ id, name, from, content string }

// outsiders ask for tasks and are no agents.
var outsiders = []string{"ann", "bob", "user", "orchestrator", "stranger"}

// A messageWriter writes random lines of CLowl and CAP.
type messageWriter struct {
	*rand.Rand
	lines []randomLine
	names int // how many there are
}

func (w *messageWriter) pick(from ...string) string { return from[w.IntN(len(from))] }

// one reports true once in so many times.
func (w *messageWriter) one(in int) bool { return w.IntN(in) == 0 }

// next is one more line.
func (w *messageWriter) next() randomLine {
	if len(w.lines) > 0 && w.one(8) {
		if line := w.lines[w.IntN(len(w.lines))]; line.fresh && len(line.requests) > 0 {
			return line // once more
		}
	}
	line := w.message()
	if strings.ContainsRune(line.about[0].name, '/') {
		return line
	}
	switch w.IntN(20) {
	case 0:
		line = line.broken(line.text[:1+w.IntN(len(line.text)-1)])
	case 1:
		line.text, line.unreadable = line.text+" and more", true // the message counts, and the rest is a dead letter
		if len(line.text) > limit {
			line = line.broken(line.text)
		}
	case 2:
		line = line.broken("[" + line.text + "]")
	case 3: // two writers
		if other := w.message(); line.fresh && other.fresh && !line.malformed && !other.malformed && len(line.requests)*len(other.requests) == 1 {
			line.text += other.text
			line.requests = append(line.requests, other.requests...)
			line.about = append(line.about, other.about...)
			if len(line.text) > limit {
				line = line.broken(line.text)
			}
		}
	}
	return line
}

// broken is the line as no message.
func (l randomLine) broken(text string) randomLine {
	b := randomLine{text: text, about: l.about, unreadable: true}
	for _, a := range l.about {
		b.may = append(b.may, a.id) // what has lost the mark of its dialect may be a request in AINL
	}
	return b
}

func (w *messageWriter) message() randomLine {
	if w.one(2) {
		return w.cap()
	}
	return w.clowl()
}

// known is the name of a message or task that was written before, perhaps.
func (w *messageWriter) known() string { return fmt.Sprintf("t%d", w.IntN(w.names+1)) }

// name names a message or task, and reports whether no other line has that name.
func (w *messageWriter) name() (name string, fresh bool) {
	switch w.IntN(40) {
	case 0, 1, 2, 3, 4:
		return w.known(), false
	case 5:
		return w.known() + ".1", false
	}
	w.names++
	name = fmt.Sprintf("t%d", w.names)
	switch w.IntN(20) {
	case 0:
		return "../" + name, true
	case 1:
		return name + "/é " + strings.Repeat("x", 50), true
	}
	return name, true
}

// A member is one of an object.
type member struct{ name, value string }

func render(members []member) string {
	parts := make([]string, 0, len(members))
	for _, m := range members {
		parts = append(parts, fmt.Sprintf("%q:%s", m.name, m.value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// text is a string in JSON.
func text(s string) string { return fmt.Sprintf("%q", s) }

// padding makes some lines long, and a few longer than a line may be.
func (w *messageWriter) padding() string {
	switch w.IntN(60) {
	case 0:
		return strings.Repeat("x", w.IntN(3<<20))
	case 1:
		return strings.Repeat("é", limit/2-300+w.IntN(300))
	}
	return strings.Repeat("x", w.IntN(200))
}

// spoil removes a member, or gives it a value that its protocol does not allow. It returns
// the name of the member, "" for none.
func (w *messageWriter) spoil(members []member, removable ...string) ([]member, string) {
	name := removable[w.IntN(len(removable))]
	for i := range members {
		if members[i].name == name {
			if w.one(3) {
				return append(members[:i:i], members[i+1:]...), name
			}
			members[i].value = w.pick("null", "7", "true", `{}`, `[]`, `""`)
			if name == "ts" {
				members[i].value = w.pick("null", `"7"`, "true", "{}", "-1", "1.5")
			}
			if (name == "d" || name == "body") && members[i].value == "{}" {
				members[i].value = "[]"
			}
			return members, name
		}
	}
	return members, ""
}

func (w *messageWriter) clowl() randomLine {
	p := w.pick("REQ", "REQ", "REQ", "REQ", "DLGT", "DLGT", "INF", "QRY", "CNCL", "DONE", "ERR", "ACK", "PROG", "CAPS")
	mid, fresh := w.name()
	from, about := w.pick("ann", "ann", "bob", "stranger", "quick", "chief", "router"), ""
	to := text(w.pick("quick", "clowl", "cap", "nobody", "chief", "*"))
	if w.one(6) {
		to = w.pick(`["quick","clowl"]`, `["quick","nobody","quick"]`, `["quick"]`, `["a","b","c","d"]`)
	}
	if p == "ERR" {
		to = `"mailboxd"` // others get what it says as a message, unless it is about a task
	}
	members := []member{{"clowl", `"0.2"`}, {"mid", text(mid)}, {"ts", "1709078400"}, {"p", text(p)}, {"from", text(from)}, {"to", to}, {"cid", text(w.pick("c1", "c2"))}}
	if p != "REQ" && p != "CAPS" || w.one(10) {
		if about = w.known(); !w.one(4) {
			members = append(members, member{"pid", text(about)})
		} else {
			about = ""
		}
	}
	t, d := w.words(p)
	members = append(members, member{"body", render([]member{{"t", text(t)}, {"d", d}})})
	malformed := ""
	if w.one(6) {
		members, malformed = w.spoil(members, "mid", "ts", "p", "from", "to", "cid", "body")
	}
	content := render(members)
	if from == "bob" && !w.one(3) || w.one(20) {
		members = append(members, member{"auth", text(w.pick("sesame", "sesame", "wrong"))})
	}
	line := randomLine{text: render(members), fresh: fresh, malformed: malformed != ""}
	if len(line.text) > limit {
		line.malformed = true
	}
	if p == "CNCL" {
		line.mid, line.cancels = mid, about
	}
	if malformed == "mid" || malformed == "p" && (p == "REQ" || p == "DLGT") {
		line.unreadable = true
	}
	if malformed == "from" {
		from = ""
	}
	r := ask{safeID(mid), mid, from, content}
	if line.about = []ask{r}; (p == "REQ" || p == "DLGT") && !line.unreadable {
		line.requests = []ask{r}
	}
	return line
}

// words are the type and the data of a message.
func (w *messageWriter) words(p string) (t, d string) {
	note := member{"note", text(w.padding())}
	switch p {
	case "DLGT":
		mode := member{"delegation_mode", text(w.pick("transfer", "fork", "assist", "assist", "lend"))}
		return "work", render([]member{mode, note})
	case "ERR":
		return "error", `{"code":"E009","msg":"no","retry":false}`
	case "CAPS":
		return "capabilities", `{"supports":["work"],"clowl":"0.2"}`
	case "QRY":
		return w.pick("status", "work"), w.pick(`{}`, `{"text":"why?"}`)
	}
	return w.pick("work", "work", "unheard"), render([]member{{"description", `"a task"`}, note})
}

func (w *messageWriter) cap() randomLine {
	kind := w.pick("delegation_notice", "delegation_notice", "delegation_notice", "message", "error_response", "oversight_inquiry")
	id, fresh := w.name()
	from := w.pick("user", "user", "orchestrator", "ann", "bob", "quick", "chief", "stranger", "registry")
	to := w.pick("quick", "clowl", "cap", "nobody", "chief", "user")
	if kind == "error_response" {
		to = "mailboxd"
	}
	words := map[string]string{"message": "content", "delegation_notice": "context_summary", "error_response": "error_message", "oversight_inquiry": "inquiry"}[kind]
	members := []member{{"type", text(kind)}, {"task_id", text(id)}, {"sender_id", text(from)}, {"recipient_id", text(to)}, {words, text("chat " + w.padding())}}
	if kind == "error_response" {
		members = append(members, member{"error_code", w.pick("504", "499", "504.0", "408", `"504"`)})
	} else if w.one(3) {
		members = append(members, member{"attachments", w.pick(`[]`, `[{"type":"text_snippet","text":"x"}]`, `[{"type":"spell"}]`, `7`)})
	}
	malformed := ""
	if w.one(6) {
		members, malformed = w.spoil(members, "task_id", "recipient_id", words, "type", "sender_id")
	}
	line := randomLine{text: render(members), fresh: fresh, malformed: malformed != ""}
	if last := members[len(members)-1].value; len(line.text) > limit || last == `"504"` || last == "7" || strings.Contains(last, "spell") {
		line.malformed = true
	}
	if malformed == "task_id" || malformed == "type" || malformed == "sender_id" {
		line.unreadable = true // without its mark it is no CAP, and without type or task_id it asks for no task
	}
	if malformed == "type" || malformed == "sender_id" {
		line.may = []string{safeID(id)} // of a request in AINL, which has neither
	}
	r := ask{safeID(id), id, from, line.text}
	if line.about = []ask{r}; kind == "delegation_notice" && !line.unreadable {
		line.requests = []ask{r}
	}
	return line
}
