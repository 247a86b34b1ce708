package owner

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/decisions/fleet"
	"mailboxd/internal/stores/dirtree"
)

// FileName is the name of the file that has what runners announced.
const FileName = "runners.json"

// file is its content.
type file struct {
	Epoch   int64         `json:"epoch"`
	Runners []fleet.Known `json:"runners"`
}

// load reads what runners announced earlier.
func (o *Owner) load() error {
	_ = os.RemoveAll(filepath.Join(o.opts.Dir, "late")) // records of an earlier version; the ledger has late answers
	path := filepath.Join(o.opts.Dir, FileName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var f file
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		return fmt.Errorf("read runners: %w; move %s away, and approvals of agents on runners are asked for again", err, path)
	}
	o.epoch = f.Epoch
	for _, k := range f.Runners {
		if fleet.Name(k.Runner) == nil {
			o.known[k.Runner] = k
		}
	}
	return nil
}

// save writes what is known of runners, whole or not at all. One write serves all calls that wait for it.
func (o *Owner) save() error {
	o.mu.Lock()
	o.saves++
	mine := o.saves
	o.mu.Unlock()
	o.saving.Lock()
	defer o.saving.Unlock()
	if o.saved >= mine {
		return nil
	}
	o.mu.Lock()
	f, last := file{Epoch: o.epoch}, o.saves
	for _, k := range o.known {
		f.Runners = append(f.Runners, k)
	}
	o.mu.Unlock()
	slices.SortFunc(f.Runners, func(a, b fleet.Known) int { return cmp.Compare(a.Runner, b.Runner) })
	text, err := json.Marshal(f, jsontext.Multiline(true))
	if err == nil {
		err = writeFile(filepath.Join(o.opts.Dir, FileName), text)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", FileName, err)
	}
	o.saved = last
	return nil
}

// remember takes what the state machine knows of runners.
func remember(known map[string]fleet.Known, states []fleet.State) {
	clear(known)
	for _, s := range states {
		if s.Incarnation != "" {
			known[s.Runner] = s.Known
		}
	}
}

// writeFile writes a file whole or not at all, durably.
func writeFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return dirtree.WriteFile(path, text)
}
