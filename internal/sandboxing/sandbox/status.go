package sandbox

import (
	"bytes"
	"encoding/json"
)

// Confined is what the weaker sandbox writes to its status file when it becomes the agent.
const Confined = `{"confined":true}` + "\n"

// A Status is what bubblewrap wrote to its status file.
type Status struct {
	Init  int  // the first process in the new namespaces; 0: there was none
	Began bool // the command was executed, and has ended; in the weaker sandbox: was executed
}

// ReadStatus reads the status file of bubblewrap. The line with the exit code is there only if
// the set-up succeeded and the command was executed.
func ReadStatus(text []byte) Status {
	var s Status
	for line := range bytes.Lines(text) {
		var event struct {
			Child int  `json:"child-pid"`
			Code  *int `json:"exit-code"`

			Confined bool `json:"confined"`
		}
		if json.Unmarshal(line, &event) != nil {
			continue
		}
		if event.Child > 0 {
			s.Init = event.Child
		}
		s.Began = s.Began || event.Code != nil || event.Confined
	}
	return s
}
