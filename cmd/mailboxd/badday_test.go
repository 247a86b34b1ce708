package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	_ "modernc.org/sqlite"

	"mailboxd/internal/running/host"
	"mailboxd/internal/sandboxing/confine"
	"mailboxd/internal/testtools/a2acli"
	"mailboxd/internal/testtools/sshd"
)

// condition says what scripts may ask for: [root] is a user that may mount, [sandbox] a machine
// on which bubblewrap makes sandboxes, [nested] one on which it does so in a sandbox, [landlock]
// a kernel that allows the weaker sandbox, [group:NAME] a group of this machine.
func condition(name string) (bool, error) {
	switch name {
	case "root":
		return canMount()
	case "landlock":
		_, err := confine.Version()
		return err == nil, nil
	case "sandbox":
		_, err := host.FindBubblewrap()
		return err == nil, nil
	case "cryptography":
		return hasCryptography(), nil
	case "a2a":
		_, err := a2acli.Build()
		return err == nil, nil
	case "sshd":
		return sshd.Installed(), nil
	case "nested":
		return canNest(), nil
	}
	if group, ok := strings.CutPrefix(name, "group:"); ok {
		_, err := user.LookupGroup(group)
		return err == nil, nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// hasCryptography reports whether Python has the package cryptography, which signs and verifies as mailboxd does.
func hasCryptography() bool { return exec.Command("python3", "-c", "import cryptography").Run() == nil }

// canNest reports whether bubblewrap makes a sandbox in a sandbox.
func canNest() bool {
	b, err := host.FindBubblewrap()
	if err != nil {
		return false
	}
	one := []string{b.Path, "--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev"}
	return exec.Command(one[0], slices.Concat(one[1:], []string{"--proc", "/proc", "--"}, one, []string{"--", "true"})...).Run() == nil
}

func canMount() (bool, error) {
	dir, err := os.MkdirTemp("", "mount")
	if err != nil {
		return false, err
	}
	defer os.Remove(dir)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4k"); err != nil {
		return false, nil
	}
	return true, unix.Unmount(dir, unix.MNT_DETACH)
}

// mountSmall mounts a file system in memory until the end of the script:
// tmpfs DIR OPTIONS, such as size=1m.
func mountSmall(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tmpfs dir options")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	ts.Check(unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,"+args[1]))
	ts.Defer(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			ts.Logf("unmount %s: %v", dir, err)
		}
	})
}

// fillUp leaves no room on the disk of a file that it makes: fill FILE. With
// "fill -files DIR", it leaves no room for another file.
func fillUp(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: fill [-files] file")
	}
	var err error
	if len(args) == 2 {
		dir := ts.MkAbs(args[1])
		ts.Check(os.Mkdir(dir, 0o700))
		for n := 0; err == nil; n++ {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprint(n)), nil, 0o600)
		}
	} else {
		err = fillFile(ts.MkAbs(args[0]))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		ts.Fatalf("fill: %v; want a full disk", err)
	}
}

func fillFile(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	zeros, err := os.Open("/dev/zero")
	if err != nil {
		return err
	}
	defer zeros.Close()
	_, err = io.Copy(file, io.LimitReader(zeros, 1<<30))
	return err
}

// held are the ledgers that scripts keep locked, by the script's directory.
var held sync.Map

// lockLedger keeps the ledger's write lock, as a foreign program may, until
// unlockdb: lockdb GLOB. With -read it goes on reading, so the daemon can't empty its log.
func lockLedger(ts *testscript.TestScript, neg bool, args []string) {
	begin := "BEGIN IMMEDIATE"
	if len(args) == 2 && args[0] == "-read" {
		begin, args = "BEGIN; SELECT count(*) FROM tasks", args[1:]
	}
	if neg || len(args) != 1 {
		ts.Fatalf("usage: lockdb [-read] glob")
	}
	found, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("lockdb: %q; want one ledger", found)
	}
	db, err := sql.Open("sqlite", found[0])
	ts.Check(err)
	db.SetMaxOpenConns(1)
	ts.Defer(func() { db.Close() })
	_, err = db.Exec("PRAGMA busy_timeout = 5000; " + begin)
	ts.Check(err)
	held.Store(ts.MkAbs("."), db)
}

func unlockLedger(ts *testscript.TestScript, neg bool, args []string) {
	db, locked := held.LoadAndDelete(ts.MkAbs("."))
	if neg || len(args) != 0 || !locked {
		ts.Fatalf("usage: unlockdb, after lockdb")
	}
	_, err := db.(*sql.DB).Exec("ROLLBACK")
	ts.Check(err)
}

// limitFiles limits the files that the daemon may have open: nofile N.
func limitFiles(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: nofile n")
	}
	n, err := strconv.ParseUint(args[0], 10, 64)
	ts.Check(err)
	for _, cmd := range ts.BackgroundCmds() {
		var limit unix.Rlimit
		ts.Check(unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &limit))
		limit.Cur = n
		ts.Check(unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil))
	}
}
