package reader

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"mailboxd/internal/cli/exit"
)

// Lines reads JSON values, and puts each on one line.
func Lines(name string, r io.Reader) ([][]byte, error) {
	var all [][]byte
	decoder := jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		value, err := decoder.ReadValue()
		switch {
		case errors.Is(err, io.EOF) && len(all) == 0:
			return nil, exit.With(exit.Usage, "%s: no task in it", name)
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, exit.With(exit.Usage, "%s: task %d is not JSON: %w", name, len(all)+1, err)
		}
		line := bytes.Clone(value)
		if bytes.ContainsAny(line, "\n\r") {
			if line, err = jsontext.AppendFormat(nil, line, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true)); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		all = append(all, line)
	}
}
