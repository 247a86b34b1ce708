package cgroup

import (
	"errors"
	"syscall"
	"testing"
)

func TestTheGroupOfAProcessIsFoundWhereItIsMounted(t *testing.T) {
	const unified = "25 30 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	const hybrid = "35 25 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n36 25 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	const part = "40 30 0:22 /user.slice /mnt/cg rw - cgroup2 cgroup2 rw\n"
	for _, test := range []struct{ cgroups, mounts, want string }{
		{"0::/user.slice/mailboxd.service/mailboxd\n", unified, "/sys/fs/cgroup/user.slice/mailboxd.service/mailboxd"},
		{"4:memory:/x\n0::/y/mailboxd\n", hybrid, "/sys/fs/cgroup/unified/y/mailboxd"},
		{"0::/user.slice/a/mailboxd\n", part, "/mnt/cg/a/mailboxd"},
		{"0::/\n", unified, "/sys/fs/cgroup"},
		{"4:memory:/x\n", unified, ""},
		{"0::/system.slice/a\n", part, ""},
		{"0::/user.slices/a\n", part, ""},
		{"0::/a\n", "25 30 0:22 / / rw - ext4 /dev/vda rw\n", ""},
	} {
		got, err := locate(test.cgroups, test.mounts)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("locate(%q) = %q, %v; want %q", test.cgroups, got, err, test.want)
		}
	}
}

func TestACgroupThatIsNotDelegatedIsNoShortage(t *testing.T) {
	err := checkWritable(t.TempDir())
	if _, is := errors.AsType[syscall.Errno](err); err == nil || is {
		t.Errorf("checkWritable = %v, of a system call: %v; want an error of its own, which isn't tried again", err, is)
	}
}
