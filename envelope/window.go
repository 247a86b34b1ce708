package envelope

import "time"

// A Window is a half-open interval: a task may start from Start on, and not from End on
// (AINL-58).
type Window struct {
	Start, End time.Time
}
