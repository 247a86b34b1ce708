package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// withMember returns a JSON object in which the object at a member has an entry, or lacks it if
// the entry is nil. Other members stay as they are, in their order. An empty text is an empty
// object. A text with comments, which some editors accept, is an error: they would be lost.
func withMember(text []byte, at, name string, entry any) ([]byte, error) {
	whole, err := membersOf(text)
	if err != nil {
		return nil, err
	}
	inner, err := membersOf(whole.get(at))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if entry == nil && inner.get(name) == nil {
		return text, nil
	}
	if entry == nil {
		inner.remove(name)
	} else {
		value, err := json.Marshal(entry)
		if err != nil {
			return nil, err
		}
		inner.set(name, value)
	}
	servers, err := inner.text()
	if err != nil {
		return nil, err
	}
	whole.set(at, servers)
	out, err := whole.text()
	if err == nil {
		err = out.Indent(jsontext.WithIndent("  "))
	}
	return append(out, '\n'), err
}

// A member is a name and a value of a JSON object.
type member struct {
	name  string
	value jsontext.Value
}

// members are those of an object, in their order.
type members []member

// membersOf reads an object. No text is an empty one.
func membersOf(text []byte) (all members, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	if v := jsontext.Value(text); !v.IsValid() || v.Kind() != '{' {
		return nil, errors.New("is no JSON object, or has comments")
	}
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		m := member{name: name.String()}
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		m.value = value.Clone()
		all = append(all, m)
	}
	return all, nil
}

func (all members) index(name string) int {
	return slices.IndexFunc(all, func(m member) bool { return m.name == name })
}

// get returns the value of a member; nil if there is none.
func (all members) get(name string) jsontext.Value {
	if at := all.index(name); at >= 0 {
		return all[at].value
	}
	return nil
}

func (all *members) set(name string, value jsontext.Value) {
	if at := all.index(name); at >= 0 {
		(*all)[at].value = value
		return
	}
	*all = append(*all, member{name, value})
}

func (all *members) remove(name string) {
	*all = slices.DeleteFunc(*all, func(m member) bool { return m.name == name })
}

// text is the object as JSON.
func (all members) text() (jsontext.Value, error) {
	var text bytes.Buffer
	e := jsontext.NewEncoder(&text)
	err := e.WriteToken(jsontext.BeginObject)
	for _, m := range all {
		err = errors.Join(err, e.WriteToken(jsontext.String(m.name)), e.WriteValue(m.value))
	}
	err = errors.Join(err, e.WriteToken(jsontext.EndObject))
	return text.Bytes(), err
}

// replaceFile puts a file in its place, whole. It keeps the mode of the file that was there. A
// link stays, and the file that it leads to is replaced.
func replaceFile(path string, text []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
