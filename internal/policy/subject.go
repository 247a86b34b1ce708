package policy

import "mailboxd/envelope"

// A Subject is what policy needs to know of the agent a task is for. The zero
// value has no manifest, cannot be metered, and may see only what is public.
type Subject struct {
	Manifest *envelope.Manifest // nil: every role, the request's tools, no standing approval
	Unfit    string             // why it cannot be asked at all, such as a broken manifest; "" when it can

	TaskTypes       []string             // it takes, as path.Match patterns; none: every type (AINL-35)
	Environments    []string             // it works in; none: all (AINL-52)
	Tools           []string             // granted to it; nil: whatever its manifest and the request say (AINL-47)
	MaxSensitivity  envelope.Sensitivity // of what it may see (AINL-44)
	Metered         bool                 // it reports what it spends
	Unpriced        bool                 // but in tokens alone, so that a limit in cents cannot be held
	AllowUnmetered  bool                 // it may take a budget although it does not
	KillAtWindowEnd bool                 // its runs end with the change window (AINL-58)
}
