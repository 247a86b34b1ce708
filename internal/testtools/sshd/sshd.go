// Package sshd starts an sshd of OpenSSH on the loopback interface, with keys and a configuration of its own, for tests.
package sshd

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrMissing says that OpenSSH isn't installed.
var ErrMissing = errors.New("OpenSSH is not installed, so there is no other machine to reach: apt-get install openssh-server")

// A Server is a running sshd.
type Server struct {
	Dir     string // has its files
	Program string // an ssh with the configuration of the test, in which the server is "machine"

	config string // of the server
	port   string
	cmd    *exec.Cmd
}

// Start starts an sshd whose files are in a directory, and whose sessions have variables such as PATH=/usr/bin.
// More lines of its configuration may follow.
func Start(dir string, env []string, more ...string) (*Server, error) {
	program, err := find()
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir, Program: filepath.Join(dir, "ssh"), config: filepath.Join(dir, "sshd_config")}
	for _, name := range []string{"host", "user", "other"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("make a key: %w: %s", err, out)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, s.port, _ = net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		return nil, err
	}
	err = errors.Join(s.Authorize("user"), s.Trust("host"), s.UseKey("user"))
	lines := append([]string{"Port " + s.port, "ListenAddress 127.0.0.1", "HostKey " + filepath.Join(dir, "host"), "PidFile none",
		"AuthorizedKeysFile " + filepath.Join(dir, "authorized_keys"), "StrictModes no", "UsePAM no", "PasswordAuthentication no",
		"KbdInteractiveAuthentication no", "SetEnv " + strings.Join(env, " ")}, more...)
	err = errors.Join(err, os.WriteFile(s.config, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	if os.Geteuid() == 0 {
		err = errors.Join(err, os.MkdirAll("/run/sshd", 0o755)) // sshd of root wants it
	}
	if err != nil {
		return nil, err
	}
	return s, s.run(program)
}

// Installed says whether OpenSSH is installed.
func Installed() bool {
	_, err := find()
	return err == nil
}

// find looks for the program of the server.
func find() (string, error) {
	if _, err := exec.LookPath("ssh"); err != nil {
		return "", ErrMissing
	}
	for _, program := range []string{"/usr/sbin/sshd", "/usr/local/sbin/sshd", "/sbin/sshd"} {
		if _, err := os.Stat(program); err == nil {
			return program, nil
		}
	}
	return "", ErrMissing
}

// run starts the program, and waits until it listens.
func (s *Server) run(program string) error {
	s.cmd = exec.Command(program, "-D", "-e", "-f", s.config)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // also when the tests are killed
	said, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start sshd: %w", err)
	}
	var all strings.Builder
	for lines := bufio.NewScanner(said); lines.Scan(); {
		fmt.Fprintln(&all, lines.Text())
		if strings.HasPrefix(lines.Text(), "Server listening") {
			_ = said.Close()
			return nil
		}
	}
	return fmt.Errorf("start sshd: %w: %s", s.cmd.Wait(), &all)
}

// Authorize makes the public key of a name the only one that may log in.
func (s *Server) Authorize(name string) error {
	key, err := os.ReadFile(filepath.Join(s.Dir, name+".pub"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.Dir, "authorized_keys"), key, 0o600)
}

// Trust makes the public key of a name the one that the client knows of the server; "" for none.
func (s *Server) Trust(name string) error {
	line := ""
	if name != "" {
		key, err := os.ReadFile(filepath.Join(s.Dir, name+".pub"))
		if err != nil {
			return err
		}
		line = fmt.Sprintf("[127.0.0.1]:%s %s", s.port, key)
	}
	return os.WriteFile(filepath.Join(s.Dir, "known_hosts"), []byte(line), 0o600)
}

// UseKey makes the key of a name that of the client.
func (s *Server) UseKey(name string) error {
	config := fmt.Sprintf("Host machine\n HostName 127.0.0.1\n Port %s\n IdentityFile %s\n IdentitiesOnly yes\n IdentityAgent none\n"+
		" UserKnownHostsFile %s\n GlobalKnownHostsFile /dev/null\n StrictHostKeyChecking yes\n",
		s.port, filepath.Join(s.Dir, name), filepath.Join(s.Dir, "known_hosts"))
	script := fmt.Sprintf("#!/bin/sh\nPATH=${PATH#%s:} exec ssh -F %s \"$@\"\n", s.Dir, filepath.Join(s.Dir, "ssh_config"))
	return errors.Join(os.WriteFile(filepath.Join(s.Dir, "ssh_config"), []byte(config), 0o600), os.WriteFile(s.Program, []byte(script), 0o700))
}

// Close ends the server, if it runs.
func (s *Server) Close() error {
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	_ = s.cmd.Wait() // it was killed
	return nil
}
