package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"mailboxd/internal/testtools/sshd"
)

// hubProgram is the directory of mailboxd-hub, which is built once, below the home directory of the tests.
var hubProgram = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(os.Getenv("HOME"), "hub")
	out, err := exec.Command("go", "build", "-o", dir+"/", "../mailboxd-hub").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build mailboxd-hub: %w: %s", err, out)
	}
	return dir, nil
})

// buildHub puts mailboxd-hub on PATH, and the address of a free port into $HUB.
func buildHub(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: hubprogram")
	}
	dir, err := hubProgram()
	ts.Check(err)
	ts.Setenv("PATH", dir+":"+ts.Getenv("PATH"))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv("HUB", free.Addr().String())
	ts.Check(free.Close())
}

// startMachine starts an sshd that stands for another machine, with a home directory of its own, and puts an ssh
// on PATH that knows it as "machine": machine HOME.
func startMachine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: machine home")
	}
	home := ts.MkAbs(args[0])
	dir := home + ".sshd"
	ts.Check(errors.Join(os.MkdirAll(home, 0o700), os.MkdirAll(dir, 0o700), os.MkdirAll(home+"/run", 0o700)))
	env := []string{"HOME=" + home, "PATH=" + ts.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	for _, name := range []string{"CONFIG", "STATE", "DATA"} {
		env = append(env, "XDG_"+name+"_HOME="+filepath.Join(home, name))
	}
	server, err := sshd.Start(dir, append(env, "XDG_RUNTIME_DIR="+home+"/run"))
	ts.Check(err)
	ts.Defer(func() { ts.Check(server.Close()) })
	ts.Setenv("PATH", dir+":"+ts.Getenv("PATH"))
}
