package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"mailboxd/internal/sandboxing/sandbox"
)

// What a path may be used for. Each is a set of rights of Landlock.
const (
	list    = unix.LANDLOCK_ACCESS_FS_READ_DIR
	read    = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | list
	ofFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE
	device = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	output = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	write  = read | output | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	handled = write | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// Version returns the version of Landlock in this kernel, and an error if it is too old for the
// weaker sandbox.
func Version() (int, error) {
	abi, _, number := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if number != 0 {
		return 0, fmt.Errorf("this kernel has no Landlock: %w", number)
	}
	if abi < sandbox.LandlockTruncate {
		return int(abi), fmt.Errorf("this kernel has version %d of Landlock; the weaker sandbox needs %d, of Linux 6.2", abi, sandbox.LandlockTruncate)
	}
	return int(abi), nil
}

// A ruleset is a ruleset of Landlock. What no rule allows is refused.
type ruleset int

// newRuleset returns a ruleset without rules, for all that this kernel can refuse.
func newRuleset() (ruleset, error) {
	abi, err := Version()
	if err != nil {
		return -1, err
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	size := unsafe.Offsetof(attr.Handled_access_net)
	if abi >= sandbox.LandlockTCP {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size = unsafe.Offsetof(attr.Scoped)
	}
	if abi >= sandbox.LandlockDevices {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= sandbox.LandlockSignals {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size = unsafe.Offsetof(attr.Quiet_access_fs)
	}
	fd, _, number := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if number != 0 {
		return -1, os.NewSyscallError("landlock_create_ruleset", number)
	}
	return ruleset(fd), nil
}

// allow adds the rules of a plan.
func (p plan) allow(r ruleset) error {
	for _, path := range p.read {
		if err := r.allowSystem(path, p.masked); err != nil {
			return err
		}
	}
	for _, path := range p.devices {
		if err := r.allowPath(path, device); err != nil {
			return err
		}
	}
	for _, b := range p.binds {
		rights := uint64(read)
		if b.writable {
			rights = write
		}
		if err := r.add(b.fd, rights); err != nil {
			return fmt.Errorf("allow %s: %w", b.path, err)
		}
	}
	for _, fd := range []int{1, 2} { // for /dev/stdout; a pipe needs no rule, and can't have one
		if err := r.add(fd, output); err != nil && !errors.Is(err, unix.EBADFD) {
			return fmt.Errorf("allow output: %w", err)
		}
	}
	return nil
}

// allowSystem allows to read a directory of the system except for masked files in it. A rule
// can't be taken back further down, so the entries beside a masked file get rules of their own.
func (r ruleset) allowSystem(path string, masked []string) error {
	if !slices.ContainsFunc(masked, func(file string) bool { return sandbox.Within(path, file) }) {
		return r.allowPath(path, read)
	}
	if slices.Contains(masked, path) {
		return nil
	}
	if err := r.allowPath(path, list); err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 {
			continue // its target needs a rule of its own
		}
		if err := r.allowSystem(filepath.Join(path, entry.Name()), masked); err != nil {
			return err
		}
	}
	return nil
}

// allowPath adds a rule for a path, if it exists.
func (r ruleset) allowPath(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if err := r.add(fd, rights); err != nil {
		return fmt.Errorf("allow %s: %w", path, err)
	}
	return nil
}

// add adds a rule for an open path and, if that is a directory, for all below it.
func (r ruleset) add(fd int, rights uint64) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, number := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if number != 0 {
		return os.NewSyscallError("landlock_add_rule", number)
	}
	return nil
}

// enforce restricts this thread.
func (r ruleset) enforce() error {
	if _, _, number := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r), 0, 0); number != 0 {
		return os.NewSyscallError("landlock_restrict_self", number)
	}
	return nil
}
