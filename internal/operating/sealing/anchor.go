package sealing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/go-json-experiment/json"

	"mailboxd/internal/stores/seal"
	"mailboxd/internal/testtools/fault"
)

// readLines reads a file of JSON lines. A last line without its end is left out, since it is still being written; a missing file
// has no lines.
func readLines[T any](path string) (list []T, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var v T
		if line[len(line)-1] != '\n' {
			break
		}
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, fmt.Errorf("read line %d of %s: %w", len(list)+1, path, err)
		}
		list = append(list, v)
	}
	return list, nil
}

// ReadAnchor reads the seals that a file got as an anchor.
func ReadAnchor(path string) ([]seal.Seal, error) {
	seals, err := readLines[seal.Seal](path)
	if err != nil {
		return nil, fmt.Errorf("read anchor: %w", err)
	}
	return seals, nil
}

// anchored returns the seals of the anchor's file, and the last one that was sent.
func (o Options) anchored() ([]seal.Seal, error) {
	var seals []seal.Seal
	var err error
	if o.AnchorFile != "" {
		seals, err = ReadAnchor(o.AnchorFile)
	}
	head, headErr := readLines[seal.Seal](o.path(headName))
	if len(head) > 0 && (len(seals) == 0 || seals[len(seals)-1].Time < head[0].Time) {
		seals = append(seals, head[0])
	}
	return seals, errors.Join(err, headErr)
}

// send gives seals to the anchor, and then notes the last one.
func (o Options) send(ctx context.Context, seals []seal.Seal) (err error) {
	var text, line []byte
	for _, s := range seals {
		if line, err = json.Marshal(s); err != nil {
			return err
		}
		line = append(line, '\n')
		text = append(text, line...)
		if len(o.AnchorCommand) > 0 {
			if _, err := runWith(ctx, o.AnchorCommand, line); err != nil {
				return fmt.Errorf("send seal %d-%d to the anchor: %w", s.First, s.Last, err)
			}
		}
	}
	if o.AnchorFile != "" {
		if err := appendLines(o.AnchorFile, text); err != nil {
			return fmt.Errorf("add seals to the anchor: %w", err)
		}
	}
	fault.Point("anchored")
	next := o.path(headName) + ".new" // not synced: an older head has seals sent again, and costs nothing else
	if err := os.WriteFile(next, line, 0o600); err != nil {
		return err
	}
	return os.Rename(next, o.path(headName))
}

// appendLines appends lines durably, after whole lines alone.
func appendLines(path string, lines []byte) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	last := []byte{'\n'}
	if info, err := file.Stat(); err == nil && info.Size() > 0 {
		if _, err := file.ReadAt(last, info.Size()-1); err != nil {
			return err
		}
	}
	if last[0] != '\n' {
		return fmt.Errorf("the last line of %s has no end; remove that line", path)
	}
	if _, err = file.Write(lines); err != nil {
		return err
	}
	return file.Sync()
}
