package torture_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// A server is one life of the daemon.
type server struct {
	cmd  *exec.Cmd
	gone chan struct{} // closed when it was reaped
	err  error         // how it ended, once gone
}

// start begins a life; fault is "name:n" or "".
func (s *site) start(fault string, args ...string) (*server, error) {
	if err := os.RemoveAll(s.path("died")); err != nil {
		return nil, err
	}
	cmd := exec.Command(daemon, append([]string{"--config", s.path("config.yaml"), "serve"}, args...)...)
	cmd.Env = append(s.environment(), "MAILBOXD_FAULT="+fault, "MAILBOXD_FAULT_LOG="+s.path("faults"), "MAILBOXD_FAULT_BOOT="+s.boot,
		"MAILBOXD_FAULT_ONCE="+s.path("died"),
		"XDG_RUNTIME_DIR="+s.path("state"))
	log, err := os.OpenFile(s.path("log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	v := &server{cmd: cmd, gone: make(chan struct{})}
	work.Go(func() { v.err = cmd.Wait(); close(v.gone) })
	return v, nil
}

// environment is what the daemon has of ours: nothing that the person who runs
// the tests has configured or exported, such as AINL_AGENT_ROOT.
func (s *site) environment() []string {
	own := []string{"HOME=" + s.path("state"), "TMPDIR=" + s.path("tmp")}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name == "PATH" || strings.HasPrefix(name, "GO") {
			own = append(own, variable)
		}
	}
	return own
}

// live lets it live for a while, unless it dies before, and then kills it. It
// reports the memory it had at its height, in KiB, as far as that was seen.
func (v *server) live(ctx context.Context, while time.Duration) (peak int) {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-v.gone:
	case <-timer.C:
	case <-ctx.Done():
	}
	peak = v.memory()
	_ = v.cmd.Process.Kill() // it may be dead, which is what we want
	<-v.gone
	return peak
}

// memory reads the largest resident size so far, in KiB.
func (v *server) memory() (peak int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.cmd.Process.Pid)) // gone: nothing to see
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	fmt.Sscan(rest, &peak)
	return peak
}

// failed reports whether it ended by itself with an error: a daemon that did
// so could not start or go on, which none of our faults explains.
func (v *server) failed() bool {
	exit, ok := errors.AsType[*exec.ExitError](v.err)
	return ok && exit.Exited() && exit.ExitCode() != 0
}
