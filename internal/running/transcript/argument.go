package transcript

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// telling are the arguments of tools that say most, the best first.
var telling = []string{
	"command", "file_path", "filePath", "absolute_path", "notebook_path", "pattern", "path", "query", "url", "description", "prompt", "skill", "name", "dir_path",
}

// maxArgument limits the text of an argument, in bytes.
const maxArgument = 500

// argument returns the most telling argument of a tool, on one line; or else all arguments.
func (r *Reader) argument(arguments jsontext.Value) string {
	var all map[string]jsontext.Value
	if len(arguments) == 0 || json.Unmarshal(arguments, &all, lenient) != nil {
		return r.short(text(arguments))
	}
	var found []string
	for _, name := range telling {
		words := text(all[name])
		if words == "" {
			continue
		}
		if found = append(found, words); name != "pattern" { // of a search, also where
			break
		}
		if where := cmp.Or(text(all["path"]), text(all["dir_path"])); where != "" {
			found = append(found, where)
		}
		break
	}
	if len(found) == 0 && len(all) > 0 {
		found = []string{string(arguments)}
	}
	return r.short(strings.Join(found, " "))
}

// text returns a JSON string, the texts of a list of blocks, or anything else as JSON.
func text(v jsontext.Value) string {
	switch v.Kind() {
	case '"':
		var s string
		_ = json.Unmarshal(v, &s, lenient) // "" for what is no text
		return s
	case '[':
		var blocks []struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(v, &blocks, lenient) != nil {
			return string(v)
		}
		var all []string
		for _, b := range blocks {
			all = append(all, b.Text)
		}
		return strings.Join(all, "\n")
	case 'n', 0:
		return ""
	}
	return string(v)
}

// short returns a text on one line, with paths relative to the directory of the program.
func (r *Reader) short(words string) string {
	words = strings.Join(strings.Fields(words[:min(len(words), 4*maxArgument)]), " ")
	if len(r.cwd) > 1 {
		words = strings.ReplaceAll(words, r.cwd+"/", "")
	}
	return cut(words)
}

func cut(words string) string {
	if len(words) <= maxArgument {
		return words
	}
	return strings.ToValidUTF8(words[:maxArgument], "") + "..."
}

// lastLine returns the last line of a text that isn't empty.
func lastLine(words string) string {
	for _, line := range slices.Backward(strings.Split(words, "\n")) {
		if line = strings.TrimSpace(line); line != "" {
			return cut(line)
		}
	}
	return ""
}

// firstLine returns the first line of a text that isn't empty.
func firstLine(words string) string {
	for line := range strings.Lines(words) {
		if line = strings.TrimSpace(line); line != "" {
			return cut(line)
		}
	}
	return ""
}
