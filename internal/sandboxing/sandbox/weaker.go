package sandbox

import "slices"

// The options of the weaker sandbox, besides those that it shares with bubblewrap. Each is
// followed by a path.
const (
	ReadOption   = "--read"   // may be read
	DeviceOption = "--device" // may be read and written
	MaskOption   = "--mask"   // may not be read, though the directory may
	TempOption   = "--tmp"    // becomes TMPDIR
	ChdirOption  = "--chdir"
	BindOption   = bindWritable
	ROBindOption = bindReadOnly
	StatusOption = "--json-status-fd"
	FilterOption = "--seccomp"
)

// devices are those that programs expect.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// WeakerOptions returns the options of the weaker sandbox for a run, as Options does for
// bubblewrap. Landlock only adds rights: a read-only path inside of a writable one is writable.
func (s Settings) WeakerOptions(r Run) []string {
	args := []string{ReadOption, "/proc"}
	for _, p := range r.System {
		args = append(args, ReadOption, p.Name)
	}
	for _, path := range slices.Concat(r.Masked.Files, r.Masked.Dirs) {
		args = append(args, MaskOption, path)
	}
	for _, path := range devices {
		args = append(args, DeviceOption, path)
	}
	binds, _ := s.binds(r)
	if r.Tasks.Real != "" {
		binds = append(binds, bindWritable, r.Tasks.Real, r.Tasks.Real)
	}
	cwd := r.Cwd.Real
	if cwd == "" {
		cwd = r.Work
	}
	return append(append(args, binds...), TempOption, r.Work, ChdirOption, cwd)
}

// Holes says for people what an agent in the weaker sandbox can do and one in bubblewrap can't.
func Holes() []string {
	return []string{
		"see whether any file exists, with its size and times",
		"change mode, owner, times and attributes of files of the user",
		"list all processes with their command lines",
		"change their priority, if they are the user's; before Linux 6.12 signal them",
		"write a read-only path inside of a writable one, such as .git/hooks",
	}
}

// Versions of Landlock.
const (
	LandlockTruncate = 3 // Linux 6.2; before, any file could be emptied, so there is no weaker sandbox
	LandlockTCP      = 4
	LandlockDevices  = 5
	LandlockSignals  = 6 // Linux 6.12
)
