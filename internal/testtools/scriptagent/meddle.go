package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// meddle is an agent that steers: it runs the orders of $ORDERS, separated by
// semicolons, with our own tool, and writes to $OUT what came of it. $HOW says
// how it goes about it: by itself; in a session of its own without a word of the
// run in its environment; or that as the child of a child that is gone. With
// $GO_ON it waits for that file first.
func meddle() {
	for file := os.Getenv("GO_ON"); file != "" && missing(file); {
		time.Sleep(5 * time.Millisecond) // an agent, not a test
	}
	switch os.Getenv("HOW") {
	case "setsid":
		again("HOW=last").Wait()
	case "fork":
		again("HOW=middle").Wait()
	case "middle":
		again(fmt.Sprintf("HOW=last of %d", os.Getpid()))
		return
	case "shed": // and leaves a child that nothing tells from a stranger once the keeper is gone
		free := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
		if err := unix.Prlimit(0, unix.RLIMIT_RTTIME, &free, nil); err != nil {
			panic(err)
		}
		again("HOW=survivor")
		select {}
	case "survivor":
		appendLine(os.Getenv("OUT")+".ready", "ready")
		for missing(os.Getenv("OUT") + ".go") {
			time.Sleep(5 * time.Millisecond)
		}
		order()
		return
	case "":
		order()
	default: // an orphan first waits until it is one
		for strings.HasSuffix(os.Getenv("HOW"), fmt.Sprint(" of ", os.Getppid())) {
			time.Sleep(time.Millisecond)
		}
		order()
		return
	}
	for missing(os.Getenv("OUT")) {
		time.Sleep(5 * time.Millisecond)
	}
	answer("meddled")
}

// orderKeeper asks each keeper of the mailbox for the end of a run, and prints what
// the keeper says besides its greeting.
func orderKeeper() {
	sockets, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_STATE_HOME"), "mailboxd", "*", "keepers", "*.sock"))
	said := ""
	for _, socket := range sockets {
		dir, name := filepath.Split(socket)
		if err := os.Chdir(dir); err != nil { // the whole path may be too long for an address
			panic(err)
		}
		conn, err := net.Dial("unix", name)
		if err != nil {
			panic(err)
		}
		runs, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Clean(dir)), "runs", "victim", "*"))
		fmt.Fprintf(conn, "{\"await\":%q}\n{\"stop\":\"stop it\"}\n", base64.StdEncoding.EncodeToString([]byte(runs[0])))
		lines := bufio.NewScanner(conn)
		greeted := lines.Scan()
		if greeted && lines.Scan() {
			said += lines.Text()
		}
	}
	answer(fmt.Sprintf("%d keepers say %q", len(sockets), said))
}

// again starts the same agent with as little as our tool needs.
func again(how string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", "meddle")
	cmd.Args[0] = "agent"
	cmd.Env = []string{how}
	for _, name := range []string{"PATH", "AINL_AGENT_ROOT", "XDG_STATE_HOME", "ORDERS", "OUT"} {
		cmd.Env = append(cmd.Env, name+"="+os.Getenv(name))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd
}

// order runs the orders.
func order() {
	var said strings.Builder
	for line := range strings.SplitSeq(os.Getenv("ORDERS"), ";") {
		cmd := exec.Command("mailboxd", strings.Fields(line)...)
		out, _ := cmd.CombinedOutput() // the exit code is told
		fmt.Fprintf(&said, "%s: exit %d: %s", strings.TrimSpace(line), cmd.ProcessState.ExitCode(), out)
	}
	aside := os.Getenv("OUT") + ".tmp"
	if err := os.WriteFile(aside, []byte(said.String()), 0o600); err != nil {
		panic(err)
	}
	if err := os.Rename(aside, os.Getenv("OUT")); err != nil {
		panic(err)
	}
}

func missing(file string) bool {
	_, err := os.Stat(file)
	return err != nil
}
