package breakout

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Stage has targets of its own, outside of a sandbox, so that a successful attempt harms
// nothing else.
type Stage struct {
	Targets
	secret  string // which the process and a file have
	closing []func() error
	serving sync.WaitGroup
}

// NewStage makes a stage with files and sockets below each of some directories.
func NewStage(places ...string) (_ *Stage, err error) {
	secret := NewSecret()
	s := &Stage{Targets: Targets{Root: os.Getuid() == 0, Secret: DigestOf(secret)}, secret: secret}
	defer func() {
		if err != nil {
			err = fmt.Errorf("prepare the targets of a break-out: %w", errors.Join(err, s.Close()))
		}
	}()
	for _, parent := range places {
		if err := s.addFiles(parent); err != nil {
			return nil, err
		}
	}
	for _, step := range []func() error{s.addSharedMemory, s.addNetwork, s.addProcess} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Close removes the stage.
func (s *Stage) Close() error {
	var failed error
	for i := len(s.closing) - 1; i >= 0; i-- {
		failed = errors.Join(failed, s.closing[i]())
	}
	s.closing = nil
	s.serving.Wait()
	return failed
}

func (s *Stage) onClose(f func() error) { s.closing = append(s.closing, f) }

// addFiles makes files as a mailbox and a home directory have them.
func (s *Stage) addFiles(parent string) error {
	dir, err := os.MkdirTemp(parent, "mailboxd-breakout-*")
	if err != nil {
		return err
	}
	s.onClose(func() error { return os.RemoveAll(dir) })
	for _, name := range []string{"secret", "result.json", "tasks.jsonl", "ledger.db"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(s.secret), 0o600); err != nil {
			return err
		}
		if name == "secret" {
			s.Readable = append(s.Readable, path)
		} else {
			s.Writable = append(s.Writable, path)
		}
	}
	s.Dirs, s.Lists = append(s.Dirs, dir), append(s.Lists, dir)
	socket := filepath.Join(dir, "s")
	if _, err := s.listen("unix", socket); errors.Is(err, unix.EINVAL) {
		return nil // the path is too long for a socket
	} else if err != nil {
		return err
	}
	s.Sockets = append(s.Sockets, socket, "/proc/1/root"+socket, "/proc/self/root"+socket)
	return nil
}

func (s *Stage) addSharedMemory() error {
	f, err := os.CreateTemp("/dev/shm", "mailboxd-breakout-*")
	if err == nil {
		s.Writable = append(s.Writable, f.Name())
		s.onClose(func() error { return os.Remove(f.Name()) })
		err = f.Close()
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	const private, size = 0o600, 4096
	s.Shm = int(time.Now().UnixNano()&0xffffff) + 1
	id, err := unix.SysvShmGet(s.Shm, size, unix.IPC_CREAT|unix.IPC_EXCL|private)
	if err != nil {
		return os.NewSyscallError("shmget", err)
	}
	s.onClose(func() error {
		_, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		return err
	})
	return nil
}

func (s *Stage) addNetwork() (err error) {
	s.Abstract = fmt.Sprintf("mailboxd-breakout-%d-%d", os.Getpid(), time.Now().UnixNano())
	if _, err = s.listen("unix", "@"+s.Abstract); err != nil {
		return err
	}
	if s.TCP, err = s.listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.UDP = c.LocalAddr().String()
	s.onClose(c.Close)
	s.serving.Go(func() {
		buf := make([]byte, 100)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(buf[:n], from) // the attempt notices
		}
	})
	return nil
}

// listen accepts connections until the stage is closed, and returns the address.
func (s *Stage) listen(network, address string) (string, error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return "", err
	}
	s.onClose(l.Close)
	s.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close() // the attempt has its connection
		}
	})
	return l.Addr().String(), nil
}

// addProcess starts a process of the same user, as another run or a tool server would. It has the secret in its
// environment, its arguments, its memory and its input.
func (s *Stage) addProcess() error {
	fd, err := unix.MemfdCreate("config", unix.MFD_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("memfd_create", err)
	}
	input := os.NewFile(uintptr(fd), "config")
	defer input.Close()
	if _, err := input.WriteString(s.secret); err != nil {
		return err
	}
	wait, end, err := os.Pipe()
	if err != nil {
		return err
	}
	defer wait.Close()
	cmd := exec.Command("/bin/sh", "-c", "read line <&3", "sh", s.secret)
	cmd.Env, cmd.Stdin, cmd.ExtraFiles = append(os.Environ(), "BREAKOUT_SECRET="+s.secret), input, []*os.File{wait}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, end.Close())
	}
	s.onClose(func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // reports the signal
		return errors.Join(err, end.Close())
	})
	s.PID = cmd.Process.Pid
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.PID), "stat"))
	s.Start = StartOf(stat)
	return err
}
