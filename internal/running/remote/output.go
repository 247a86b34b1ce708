package remote

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Dir is the directory of a run with what its agent handed over.
const Dir = "a2a"

// maxFiles limits the files of a run.
const maxFiles = 1000

// ErrTooMany says that an agent handed over more parts than a run may have files.
var ErrTooMany = fmt.Errorf("the agent handed over more than %d files", maxFiles)

// An Output is what an agent handed over.
type Output struct {
	Text  string           // all its texts, a paragraph each
	Data  []jsontext.Value // its structured data
	Files []string         // paths of the files
	URLs  []string         // of what is elsewhere; nothing was read there
}

// Save writes artifacts to files below a run directory: a text file for the texts of each, and one for each other
// part. Their names are of letters, digits and a few signs. What redact takes out is in no file.
func Save(dir string, artifacts []*a2a.Artifact, redact func([]byte) []byte) (Output, error) {
	o := Output{}
	s := saver{dir: filepath.Join(dir, Dir), redact: redact, output: &o, used: map[string]bool{}}
	var paragraphs []string
	for i, a := range artifacts {
		if a == nil {
			continue
		}
		name := cmp.Or(a.Name, string(a.ID), fmt.Sprintf("artifact-%d", i+1))
		if text := strings.Join(texts(a.Parts), ""); text != "" { // a stream hands over one text in parts
			paragraphs = append(paragraphs, text)
			s.write(name, ".txt", []byte(text))
		}
		for _, p := range a.Parts {
			if p != nil {
				s.part(cmp.Or(p.Filename, name), p)
			}
		}
	}
	o.Text = strings.Join(paragraphs, "\n\n")
	return o, s.err
}

// A saver writes files until one can't be written.
type saver struct {
	dir    string
	redact func([]byte) []byte
	output *Output
	used   map[string]bool // names of files
	err    error
}

// part keeps a part that is no text.
func (s *saver) part(name string, p *a2a.Part) {
	switch content := p.Content.(type) {
	case a2a.Raw:
		s.write(name, ".bin", content)
	case a2a.Data:
		text, err := json.Marshal(content.Value, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
		if err != nil {
			s.err = cmp.Or(s.err, err)
			return
		}
		s.output.Data = append(s.output.Data, text)
		s.write(name, ".json", text)
	case a2a.URL:
		if u, err := url.Parse(string(content)); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
			s.output.URLs = append(s.output.URLs, u.String())
		}
	}
}

// write writes a new file, whose name gets a number if another one has it.
func (s *saver) write(wanted, ending string, content []byte) {
	if len(s.output.Files) == maxFiles {
		s.err = cmp.Or(s.err, ErrTooMany)
	}
	if s.err == nil {
		s.err = os.MkdirAll(s.dir, 0o700)
	}
	name := safeName(wanted)
	if filepath.Ext(name) == "" {
		name += ending
	}
	free := name
	for n := 2; s.used[free]; n++ {
		free = fmt.Sprintf("%d-%s", n, name)
	}
	s.used[free] = true
	path := filepath.Join(s.dir, free)
	if s.err == nil {
		s.err = os.WriteFile(path, s.redact(content), 0o600)
	}
	s.output.Files = append(s.output.Files, path)
}

// maxName limits the name of a file, in bytes.
const maxName = 100

// safeName returns the last part of a name without what a shell or a file system could read otherwise.
func safeName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		}
		return '_'
	}, name)
	return cmp.Or(strings.TrimLeft(name[max(0, len(name)-maxName):], ".-"), "artifact")
}
