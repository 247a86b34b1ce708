package access

import (
	"errors"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A thread may have descriptors of its own: its process is an owner, beside others that have a
// copy of the descriptor.
func TestAThreadWithItsOwnDescriptorsIsAnOwner(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	done, begun := make(chan struct{}), make(chan error, 1)
	runtime.LockOSThread() // if this is the first thread, no other goroutine has it
	defer runtime.UnlockOSThread()
	decoy := 0
	var thread sync.WaitGroup
	defer thread.Wait()
	defer close(done)
	thread.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		begun <- func() error {
			if unix.Gettid() == os.Getpid() {
				return errors.New("this is the first thread; try again")
			}
			if err := unix.Unshare(unix.CLONE_FILES); err != nil {
				return err
			}
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
				return err
			}
			decoy, err = syscall.ForkExec("/bin/sleep", []string{"sleep", "30"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2, uintptr(fd)}})
			return err
		}()
		<-done
	})
	if err := <-begun; err != nil {
		t.Skip(err)
	}
	defer func() { _ = syscall.Kill(decoy, syscall.SIGKILL); _, _ = syscall.Wait4(decoy, nil, 0, nil) }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	pids, err := ownersOf(addressOf(conn.RemoteAddr()), addressOf(conn.LocalAddr()))
	if err != nil || !slices.Contains(pids, os.Getpid()) {
		t.Errorf("ownersOf = %v, %v; want this process, %d, which uses the connection, beside the decoy %d", pids, err, os.Getpid(), decoy)
	}
}
