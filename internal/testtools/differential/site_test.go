package differential_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

//go:embed testdata/agent.sh
var agentScript string

//go:embed testdata/talk.sh
var talkScript string

// patience is how long anything that has to happen may take on a busy machine.
const patience = 2 * time.Minute

// A site is one mailbox with everything around it, and the build that serves it.
// Both builds have theirs at the same path, one after the other.
type site struct {
	dir     string
	daemon  string // the path of the build
	cmd     *exec.Cmd
	gone    chan error // how the daemon ended
	http    *http.Client
	leases  []string        // those that were handed out, the latest last
	threads map[string]bool // the conversations that lines have named
	over    map[string]int  // the revisions of tasks that are done and of which everything was told
}

func newSite(dir, daemon string, l limits) (*site, error) {
	s := &site{dir: dir, daemon: daemon, threads: map[string]bool{}, over: map[string]int{}}
	err := os.RemoveAll(dir)
	for _, name := range []string{"box/tasks", "box/results", "run", "gates", "marks"} {
		err = errors.Join(err, os.MkdirAll(s.path(name), 0o700))
	}
	files := map[string]string{"config.yaml": l.yaml(dir)}
	for name, text := range definitions {
		files[name] = text
	}
	files["agent.sh"], files["talk.sh"] = agentScript, talkScript
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(s.path(name), []byte(text), 0o600))
	}
	s.http = &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: s.dial}}
	return s, err
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

// environment is what the builds have of ours: nothing that the person who runs
// the tests has configured.
func (s *site) environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "XDG_RUNTIME_DIR=" + s.path("run"), "TMPDIR=" + s.dir, "LANG=C.UTF-8", "USER=tester", "LOGNAME=tester"}
}

// command is a command of the build.
func (s *site) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.daemon, append(args, "--config", s.path("config.yaml"))...)
	cmd.Env, cmd.Dir = s.environment(), s.dir
	cmd.Args[0] = "mailboxd" // as what a process is told about: both builds have one name
	return cmd
}

// start starts the daemon and waits until it answers.
func (s *site) start(ctx context.Context) error {
	log, err := os.OpenFile(s.path("log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = s.command("serve")
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.gone = make(chan error, 1)
	daemons.Go(func() { s.gone <- s.cmd.Wait() })
	return s.await(ctx, "the daemon to answer", func() (bool, error) {
		var status struct {
			PID int `json:"pid"`
		}
		err := s.get(ctx, "/v1/status?brief=1", &status)
		return err == nil && status.PID == s.cmd.Process.Pid, nil
	})
}

// stop ends the daemon by a signal and waits until it has ended.
func (s *site) stop(signal syscall.Signal) error {
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Signal(signal)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	ended := <-s.gone
	s.cmd = nil
	s.http.CloseIdleConnections()
	if exit, ok := errors.AsType[*exec.ExitError](ended); ok && exit.Exited() {
		text, _ := os.ReadFile(s.path("log"))
		return fmt.Errorf("the daemon ended with %w:\n%s", ended, text)
	}
	return err
}

// end kills whatever is left of the mailbox, the keeper before its runs.
func (s *site) end() {
	_ = s.stop(syscall.SIGKILL)
	for s.killAll("cmdline", "keeper\x00"+s.dir)+s.killAll("environ", "MAILBOX_RUN_DIR="+s.dir)+s.killAll("cmdline", s.path("agent.sh")) > 0 {
		time.Sleep(time.Millisecond) // until the kernel has removed them
	}
}

// runs tells whether a process of a run of a task lives.
func (s *site) runs(id string) bool {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		content, _ := os.ReadFile(path) // a process that has ended has none
		if text := string(content); strings.Contains(text, "MAILBOX_RUN_DIR="+s.dir+"/") && strings.Contains(text, "MAILBOX_TASK_ID="+id+"\x00") {
			return true
		}
	}
	return false
}

// killAll kills the processes of which a file in /proc has a text.
func (s *site) killAll(file, text string) (killed int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/" + file)
	for _, path := range paths {
		content, err := os.ReadFile(path) // a process that has ended has none
		if err != nil || !strings.Contains(string(content), text) {
			continue
		}
		var pid int
		fmt.Sscan(filepath.Base(filepath.Dir(path)), &pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
		killed++
	}
	return killed
}

func (s *site) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	sockets, err := filepath.Glob(s.path("run/mailboxd/*.sock"))
	if err != nil || len(sockets) != 1 {
		return nil, fmt.Errorf("there are %d control sockets", len(sockets))
	}
	return new(net.Dialer).DialContext(ctx, "unix", sockets[0])
}

// await looks until it sees what it waits for. It looks more rarely as time goes by.
func (s *site) await(ctx context.Context, what string, seen func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	pause := 4 * time.Millisecond
	for {
		if ok, err := seen(); ok || err != nil {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("waited %s for %s", patience, what)
		}
		pause = min(pause*3/2, 30*time.Millisecond)
	}
}
