package policy

import (
	"mailboxd/envelope"
	"mailboxd/internal/decisions/task"
)

// A Subject holds the facts about an agent that policy needs. The zero value has no
// manifest, isn't metered, and may see only public content.
type Subject struct {
	Manifest *envelope.Manifest // nil: every role, the request's tools, no standing approval
	Unfit    string             // why the agent is unusable, such as a broken manifest; "" if it is usable

	TaskTypes       []string             // accepted, as path.Match patterns; none: all (AINL-35)
	Environments    []string             // accepted; none: all (AINL-52)
	Tools           []string             // granted; nil: as the manifest and the request say (AINL-47)
	MaxSensitivity  envelope.Sensitivity // of content that it may see (AINL-44)
	Metered         bool                 // it reports its spending
	Unpriced        bool                 // it reports tokens only, so a limit in cents can't be enforced
	AllowUnmetered  bool                 // it accepts a budget without metering
	NoFiles         bool                 // its sandbox starts before its tasks, so it can't see their files
	NoDir           bool                 // its runs have no directory, so they get no artifacts
	KillAtWindowEnd bool                 // its runs end with the change window (AINL-58)
	Calls           *task.CallRules      // for the calls about which it asks; nil: it doesn't ask
	Card            envelope.CardLimits  // of its card; the concurrency is not a property of one task (CLUTCH-27)
}
