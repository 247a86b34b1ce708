package acp

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/running/transcript"
)

// A Call is a call of a tool, as it is asked about. What the agent doesn't say is empty.
type Call struct {
	ID      string         `json:"id"`
	Kind    string         `json:"kind"`
	Title   string         `json:"title"`
	Command string         `json:"command"`
	Paths   []string       `json:"paths"` // absolute, as the agent names them
	Diff    string         `json:"diff"`
	Raw     jsontext.Value `json:"raw"` // the input of the tool
}

// A toolCall is a call or an update of one in ACP. Members of another form than the protocol's are
// as if they weren't there.
type toolCall struct {
	ID        jsontext.Value `json:"toolCallId"`
	Kind      jsontext.Value `json:"kind"`
	Title     jsontext.Value `json:"title"`
	Status    jsontext.Value `json:"status"`
	Content   jsontext.Value `json:"content"`
	Locations jsontext.Value `json:"locations"`
	Input     jsontext.Value `json:"rawInput"`
}

// merge adds what an update of the call says.
func (t *toolCall) merge(u toolCall) {
	for _, m := range []struct{ to, from *jsontext.Value }{
		{&t.Kind, &u.Kind}, {&t.Title, &u.Title}, {&t.Status, &u.Status},
		{&t.Content, &u.Content}, {&t.Locations, &u.Locations}, {&t.Input, &u.Input},
	} {
		if text := string(*m.from); text != "" && text != "null" && text != "[]" && text != "{}" {
			*m.to = m.from.Clone()
		}
	}
}

// calls are the calls of tools in a run.
type calls struct {
	cwd  string
	byID map[string]*tracked // by session and id
	used map[string]bool     // ids of asked calls

	rejected bool // a call was
}

// A tracked call is one that has not ended.
type tracked struct {
	toolCall
	asked   map[string]string // ids by what was asked
	allowed bool              // one of them was
	ended   bool
}

// of returns a call, which may be new.
func (c *calls) of(session, id string) *tracked {
	if c.byID == nil {
		c.byID, c.used = map[string]*tracked{}, map[string]bool{}
	}
	key := session + "\n" + id
	if c.byID[key] == nil {
		c.byID[key] = &tracked{asked: map[string]string{}}
	}
	return c.byID[key]
}

// update takes an update of a call. It returns the call if it is completed, and was not allowed: the
// agent did not ask, or did not keep to the answer.
func (c *calls) update(session string, u toolCall) (done Call, unallowed bool) {
	id := text(u.ID)
	t := c.of(session, id)
	if t.ended {
		return Call{}, false
	}
	t.merge(u)
	status := text(t.Status)
	if status != "completed" && status != "failed" {
		return Call{}, false
	}
	done, unallowed = c.facts(id, t.toolCall), status == "completed" && !t.allowed
	t.ended, t.toolCall = true, toolCall{} // it can be large
	return done, unallowed
}

// ask takes a question about a call. The id of what is asked is new for every other content, so that
// no decision is taken for one about another call.
func (c *calls) ask(session string, u toolCall) (asked Call, repeated bool) {
	id := text(u.ID)
	t := c.of(session, id)
	t.merge(u)
	asked = c.facts(id, t.toolCall)
	content, err := json.Marshal(asked, json.Deterministic(true), lenient)
	if err != nil {
		content = []byte(fmt.Sprint(len(c.used))) // unlike any other
	}
	if earlier, ok := t.asked[string(content)]; ok {
		asked.ID = earlier
		return asked, true
	}
	for n := 2; c.used[asked.ID]; n++ {
		asked.ID = fmt.Sprintf("%s#%d", id, n)
	}
	c.used[asked.ID], t.asked[string(content)] = true, asked.ID
	return asked, false
}

// facts returns what is known of a call.
func (c *calls) facts(id string, t toolCall) Call {
	call := Call{ID: id, Kind: text(t.Kind), Title: text(t.Title), Raw: t.Input, Paths: []string{}}
	if len(call.Raw) == 0 {
		call.Raw = jsontext.Value("null")
	}
	var input struct {
		Command jsontext.Value `json:"command"`
	}
	if json.Unmarshal(t.Input, &input, lenient) == nil {
		call.Command = commandOf(input.Command)
	}
	var places []struct {
		Path string `json:"path"`
	}
	_ = json.Unmarshal(t.Locations, &places, lenient) // no paths then
	var contents []jsontext.Value
	_ = json.Unmarshal(t.Content, &contents, lenient) // no diffs then
	for _, p := range places {
		call.addPath(c.cwd, p.Path)
	}
	for _, content := range contents {
		var d transcript.Diff
		if json.Unmarshal(content, &d, lenient) == nil && d.Type == "diff" {
			call.addPath(c.cwd, d.Path)
			call.Diff += d.Unified()
		}
	}
	for _, path := range pathsIn(t.Input) {
		call.addPath(c.cwd, path)
	}
	return call
}

func (c *Call) addPath(cwd, path string) {
	if path == "" {
		return
	}
	if !filepath.IsAbs(path) {
		path = cwd + "/" + path // not cleaned: a link may come before ".."
	}
	if !slices.Contains(c.Paths, path) {
		c.Paths = append(c.Paths, path)
	}
}

// pathNames are the members of inputs in which the known programs name a file.
var pathNames = []string{"file_path", "filePath", "filepath", "path", "notebook_path", "abs_path"}

// pathsIn returns the paths that an input names.
func pathsIn(input jsontext.Value) (paths []string) {
	var members map[string]jsontext.Value
	_ = json.Unmarshal(input, &members, lenient) // no paths then
	for _, name := range pathNames {
		paths = append(paths, text(members[name]))
	}
	return paths
}

// commandOf returns a command that is a text, or a list of words: these are quoted for a shell, so
// that a word with a special character isn't taken for more than it is.
func commandOf(v jsontext.Value) string {
	var words []string
	if json.Unmarshal(v, &words, lenient) != nil {
		return text(v)
	}
	for i, word := range words {
		if word == "" || strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

func plain(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,@+%", r)
}

// text returns a JSON text; "" for anything else.
func text(v jsontext.Value) (s string) {
	if v.Kind() == '"' {
		_ = json.Unmarshal(v, &s, lenient) // it is a text
	}
	return s
}
