package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"mailboxd/internal/cli/term"
	"mailboxd/internal/decisions/task"
)

// An Approver is an approver of the configuration.
type Approver struct {
	Name  string
	Proof task.ProofLevel // that the approver's decisions need
}

// approvers says how decisions are proven, and who could change that.
func (d *checker) approvers(context.Context) {
	signed := false
	for _, a := range d.Approvers {
		switch a.Proof {
		case task.ProofNone:
			d.good("approvers", "%s: no proof; any program of that user that no agent started can approve", a.Name)
		case task.ProofTerminal:
			d.good("approvers", "%s: a number typed at a terminal; a program that drives a terminal can approve", a.Name)
		case task.ProofKey:
			d.good("approvers", "%s: an SSH key; a program that reaches the ssh-agent can approve", a.Name)
		default:
			d.good("approvers", "%s: a hardware key that is touched, or a passkey", a.Name)
		}
		signed = signed || a.Proof >= task.ProofKey
	}
	if !signed {
		return
	}
	file, hint := d.ApproversFile, "let root own it and its directories: sudo chown root "
	if file == "" {
		file, hint = d.Config, "keep the approvers in a file that root owns, and name it in approvers_file; not in "
	}
	if at := writable(file); at != "" {
		d.warn("approvers", hint+term.ShellWord(file), "agents run as you, and you can write %s, so an agent could name a key of its own", at)
	}
}

// approversSocket checks that the group of approvers, and nobody else, reaches its socket.
func (d *checker) approversSocket(context.Context) {
	if d.ApproversGroup == "" {
		return
	}
	if d.GroupErr != nil {
		d.bad("approvers_socket", "name a group of this machine, or make it: sudo groupadd "+term.ShellWord(d.ApproversGroup), "%v", d.GroupErr)
		return
	}
	err := d.GroupSocket.CheckDir()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.good("approvers_socket", "%s: serve makes it", d.GroupSocket)
	case err != nil:
		fix := fmt.Sprintf("sudo install -d -o %d -g %d -m 750 %s", os.Geteuid(), d.GroupSocket.Group, term.ShellWord(d.GroupSocket.Dir))
		d.bad("approvers_socket", fix, "%s: %v", d.GroupSocket, err)
	default:
		d.good("approvers_socket", "members of %s decide at %s", d.ApproversGroup, d.GroupSocket)
	}
}

// writable returns what lets this user change a file: the file, or one of its directories; "" for
// nothing. In a sticky directory only the owner of an entry can replace it.
func writable(file string) string {
	path, err := filepath.Abs(file)
	if err != nil {
		return file
	}
	if os.Geteuid() == 0 {
		return fmt.Sprintf("%s, since mailboxd runs as root", path)
	}
	for entry := ""; ; entry, path = path, filepath.Dir(path) {
		info, err := os.Stat(path)
		if err == nil && unix.Access(path, unix.W_OK) == nil && !(entry != "" && info.Mode()&os.ModeSticky != 0 && !ours(entry)) {
			return path
		}
		if err == nil && ours(path) { // the owner can make it writable
			return path
		}
		if path == "/" || !strings.HasPrefix(path, "/") {
			return ""
		}
	}
}

func ours(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && int(info.Sys().(*syscall.Stat_t).Uid) == os.Geteuid()
}
