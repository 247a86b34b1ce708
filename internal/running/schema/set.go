// Package schema holds an agent's answer against the JSON Schema that its
// request names. Schemas come from one directory and from this program alone,
// and no schema and no answer can make a check go on for long.
package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A Set is the schemas that requests can name. Load makes it, it never
// changes, and it may be used concurrently.
type Set struct {
	byRef  map[string]*jsonschema.Schema
	texts  map[string][]byte // the files, by their refs
	record *Record           // notes uses; nil: nothing does

	mu    sync.Mutex // guards steps: one check at a time
	steps *steps
}

// Load reads every schema of a directory; "" is a directory without any. The
// schema that requests name as schema://acme/report/v2 is acme/report/v2.json
// there. An error names the file that cannot be used: one that is no JSON
// Schema, or refers to something that is not in the directory.
func Load(dir string) (*Set, error) {
	files, err := read(dir)
	if err != nil {
		return nil, fmt.Errorf("load schemas: %w", err)
	}
	for _, ref := range slices.Sorted(maps.Keys(builtin)) {
		if _, taken := files[ref]; taken {
			return nil, fmt.Errorf("load schemas: %s: %s is built in", file(ref), ref)
		}
		files[ref] = builtin[ref]
	}
	return compile(files)
}

// With returns the set with another file in the place of a ref.
func (s *Set) With(ref string, text []byte) (*Set, error) {
	files := maps.Clone(s.texts)
	files[ref] = text
	return compile(files)
}

// One returns a set of one schema, which no directory has, under a ref.
func One(ref string, text []byte) (*Set, error) { return compile(map[string][]byte{ref: text}) }

// compile makes a set of files.
func compile(files map[string][]byte) (*Set, error) {
	s := &Set{byRef: map[string]*jsonschema.Schema{}, texts: files, steps: &steps{left: maxSteps}}
	compiler, err := newCompiler(files, s.steps)
	if err != nil {
		return nil, fmt.Errorf("load schemas: %w", err)
	}
	for _, ref := range slices.Sorted(maps.Keys(files)) {
		if s.byRef[ref], err = compiler.Compile(ref); err != nil {
			return nil, fmt.Errorf("load schemas: %s: %s", file(ref), oneLine(err))
		}
	}
	return s, nil
}

// newCompiler returns a compiler that knows the files and asks nobody else for
// more: not the file system, and never the network.
func newCompiler(files map[string][]byte, steps *steps) (*jsonschema.Compiler, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.RegisterVocabulary(steps.vocabulary())
	c.AssertVocabs()
	known := documents{}
	c.UseLoader(known)
	for ref, text := range files {
		document, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file(ref), err)
		}
		known[ref] = document
	}
	return c, nil
}

// documents are what schemas can refer to, by their refs.
type documents map[string]any

// Load implements jsonschema.URLLoader. Files beside each other may be
// referred to by their names.
func (d documents) Load(url string) (any, error) {
	if document, ok := d[strings.TrimSuffix(url, extension)]; ok {
		return document, nil
	}
	return nil, fmt.Errorf("there is no such schema in the directory")
}

// Has reports whether a request that names ref can be held to it.
func (s *Set) Has(ref string) bool { return s.byRef[ref] != nil }

// Refs returns the refs of all schemas, sorted.
func (s *Set) Refs() []string { return slices.Sorted(maps.Keys(s.texts)) }

// IsBuiltIn reports whether a schema is a part of this program.
func IsBuiltIn(ref string) bool { return builtin[ref] != nil }

// Text returns a schema as it is in its file; nil for one that the set does not have.
func (s *Set) Text(ref string) []byte { return s.texts[ref] }

// Check returns an error that says what is wrong first with a document, nil
// when nothing is. A document that takes too much to judge is wrong, and so is
// everything under a ref that the set does not have.
func (s *Set) Check(ref string, document []byte) (err error) {
	schema := s.byRef[ref]
	if schema == nil {
		return fmt.Errorf("there is no schema %s", ref)
	}
	if s.record != nil {
		s.record.use(ref)
	}
	value, err := decode(document)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// What an agent prints must not end the daemon, whatever the library makes
	// of it. Running out of steps ends a check in the same way.
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("cannot be judged: %v", cause)
		}
	}()
	s.steps.left = maxSteps
	return complaint(schema.Validate(value))
}
