package envelope

import "time"

// A Window is a half-open stretch of time: a task may start at Start and no
// longer at End (AINL-58).
type Window struct {
	Start, End time.Time
}
