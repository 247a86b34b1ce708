package gate_test

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/internal/sandboxing/gate"
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == "enter" {
		panic(gate.Enter(os.Args[2:]))
	}
}

func TestAnAgentBeginsAlsoIfItsGateIsGone(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(pair[1])
	socket := os.NewFile(uintptr(pair[0]), "socket")
	defer socket.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "enter", "3", "/bin/sh", "-c", `echo "began with $HTTPS_PROXY"`)
	cmd.ExtraFiles = []*os.File{socket}
	text, err := cmd.CombinedOutput()
	if want := "began with http://127.0.0.1:"; err != nil || len(text) <= len(want) || string(text[:len(want)]) != want {
		t.Errorf("enter = %v: %s; want an agent that began", err, text)
	}
}
