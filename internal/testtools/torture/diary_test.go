package torture_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// A key names one version of a task.
type key struct {
	id      string
	version int
}

// An execution is what agents have signed for one version of a task.
type execution struct {
	began   int // how often an agent began
	retried int // how often one asked for another attempt

	asked bool // a run asked for it in its own task file

	agreed bool // a person agreed to it before an agent began, or was about to
}

// diary reads what the agents have signed.
func (s *site) diary() (map[key]execution, error) {
	text, err := os.ReadFile(s.path("diary"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := map[key]execution{}
	for line := range strings.Lines(string(text)) {
		var what string
		var k key
		if n, _ := fmt.Sscan(line, &what, &k.id, &k.version); n < 3 {
			return nil, fmt.Errorf("read diary: %q", line)
		}
		e := all[k]
		switch what {
		case "again":
			e.retried++
		case "asked":
			e.asked = true
		case "began":
			e.began++
		case "agreed-pre":
			e.agreed = e.agreed || e.began == 0
		}
		all[k] = e
	}
	return all, nil
}

// judge: each execution beyond the first was asked for by the one before.
func (e execution) judge() error {
	if e.began > 1+e.retried {
		return fmt.Errorf("executed %d times although only %d runs asked for another attempt", e.began, e.retried)
	}
	return nil
}
