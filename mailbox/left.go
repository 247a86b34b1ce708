package mailbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/go-json-experiment/json"
)

// leftName is the file with the list of PutLeft.
const leftName = "left.json"

// mostLeft limits how many entries PutLeft writes.
const mostLeft = 100

// A Left is data that a collection could not remove.
type Left struct {
	Path  string `json:"path"` // absolute
	Cause string `json:"cause"`
}

// PutLeft replaces the list of what the last collection could not remove. Only the first hundred
// are kept.
func (s *State) PutLeft(list []Left) error {
	if len(list) == 0 {
		if err := s.root.Remove(leftName); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove list of what could not be removed: %w", err)
		}
		return nil
	}
	text, err := json.Marshal(list[:min(len(list), mostLeft)])
	if err == nil {
		err = s.putAside(".", leftName, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write list of what could not be removed: %w", err)
	}
	return nil
}

// Left returns the list of PutLeft, without what was removed meanwhile.
func (s *State) Left() (list []Left, err error) {
	text, err := s.root.ReadFile(leftName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("read list of what could not be removed: %w", err)
	}
	return slices.DeleteFunc(list, func(l Left) bool {
		_, err := os.Lstat(l.Path)
		return errors.Is(err, fs.ErrNotExist)
	}), nil
}
