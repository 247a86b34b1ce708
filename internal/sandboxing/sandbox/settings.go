// Package sandbox describes the sandbox of an agent: the options of bubblewrap for a run, and
// the seccomp filter of its processes. It reads no files and starts nothing. The runner opens
// the paths and runs bubblewrap.
package sandbox

// A Profile says what a sandboxed agent may write. The zero value is None.
type Profile string

// The profiles.
const (
	None      Profile = "none"      // no sandbox
	ReadOnly  Profile = "read-only" // writes only below the run's own work directory
	Workspace Profile = "workspace" // also writes the working directory and the listed paths
	Offline   Profile = "offline"   // as Workspace, without any network
)

// Profiles lists the profiles for people.
func Profiles() []string {
	return []string{string(None), string(ReadOnly), string(Workspace), string(Offline)}
}

// A Missing says what happens where the machine can't provide the sandbox. The zero value is
// Refuse.
type Missing string

// What happens without a sandbox.
const (
	Refuse Missing = "refuse" // the task ends as sandbox_unavailable
	Weaker Missing = "weaker" // the agent runs with Landlock and a filter, and its result claims less
	Open   Missing = "none"   // the agent runs without a sandbox, and its result doesn't claim one
)

// Settings are the sandbox of one agent, as configured.
type Settings struct {
	Profile Profile `json:"profile"`
	Missing Missing `json:"missing"`
	Cwd     Path    `json:"cwd"`     // the configured working directory; zero: none
	Home    []Path  `json:"home"`    // writable, below the home directory
	Read    []Path  `json:"read"`    // read-only
	Write   []Path  `json:"write"`   // writable, except in ReadOnly
	Network Hosts   `json:"network"` // none: no network

	SetupNetwork Hosts `json:"setup_network,omitzero"` // of the setup before the agent's command; nil: Network, empty: none

	Egress Egress `json:"egress,omitzero"` // the hosts that may see each sensitivity

	Memory    int64 `json:"memory,omitzero"`    // bytes; 0: unlimited
	Processes int64 `json:"processes,omitzero"` // also threads; 0: unlimited
	Tasks     bool  `json:"tasks,omitzero"`     // each run has a task file of its own
}

// EnterPath is where a sandbox with a network list has the program mailboxd, as a link: the
// first step inside is its command enter.
const EnterPath = "/run/mailboxd"

// Active reports whether the settings ask for a sandbox.
func (s Settings) Active() bool { return s.Profile != "" && s.Profile != None }

// A Path is a path with its meaning when the configuration was read. A later symbolic link
// doesn't change Real, so an agent can't redirect its next run.
type Path struct {
	Name string `json:"name"` // as configured: absolute
	Real string `json:"real"` // without symbolic links
}
