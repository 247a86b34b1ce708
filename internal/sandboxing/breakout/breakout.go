// Package breakout tries to break out of a sandbox. Its attempts show for one machine what a
// sandbox holds. They change only the files, sockets and processes that the targets name.
package breakout

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// Targets are what an attempt tries to reach. They are outside of the sandbox.
type Targets struct {
	Readable []string `json:"readable"` // files with secrets
	Writable []string `json:"writable"` // files that only mailboxd writes; they are opened for writing, and not changed
	Dirs     []string `json:"dirs"`     // directories where no file may be made
	Lists    []string `json:"lists"`    // directories whose content is private
	Sockets  []string `json:"sockets"`  // pathname sockets
	Abstract string   `json:"abstract"` // the name of an abstract socket
	TCP      string   `json:"tcp"`      // an address that accepts
	UDP      string   `json:"udp"`      // an address that answers
	PID      int      `json:"pid"`      // a process of the same user
	Start    string   `json:"start"`    // its start time in /proc/PID/stat, since numbers repeat
	Shm      int      `json:"shm"`      // the key of a System V segment
	Root     bool     `json:"root"`     // the sandbox is one of root
	Secret   string   `json:"secret"`   // the digest of a secret that others have; "": there is none
}

// An Attempt is one way out.
type Attempt struct {
	Name string
	try  func(Targets) error // nil: it broke through
}

// A Finding is the end of one attempt.
type Finding struct {
	Attempt string `json:"attempt"`
	Broke   bool   `json:"broke"`
	Why     string `json:"why"` // the error that held it; what was reached otherwise
}

// errAbsent says that the machine has nothing to try.
var errAbsent = errors.New("this machine has nothing to try")

// Name is the argument that makes this program the one that tries to break out, with targets
// in JSON. It prints its findings in JSON. No command of the command line has this name.
const Name = "breakout"

// Main is the program that tries to break out.
func Main(args []string) error {
	var t Targets
	if len(args) != 1 {
		return errors.New("break out: want one argument, the targets")
	}
	if err := json.Unmarshal([]byte(args[0]), &t); err != nil {
		return fmt.Errorf("break out: read targets: %w", err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(Run(t)); err != nil {
		return fmt.Errorf("break out: print findings: %w", err)
	}
	return nil
}

// Holes lists the attempts that succeed in the weaker sandbox, as docs/sandbox.md has them.
// Signals says that Landlock holds signals, as it does since Linux 6.12.
func Holes(signals bool) []string {
	holes := []string{
		"chmod a file", "change the times of a file", "stat a file", "list the processes of the host", "find a secret in arguments",
	}
	if !signals {
		holes = append(holes, "signal a process")
	}
	return holes
}

// Run makes all attempts.
func Run(t Targets) []Finding { return attempt(t, Attempts()) }

func attempt(t Targets, attempts []Attempt) []Finding {
	var all []Finding
	for _, a := range attempts {
		err := a.try(t)
		f := Finding{Attempt: a.Name, Broke: err == nil}
		if err != nil {
			f.Why = err.Error()
		}
		all = append(all, f)
	}
	return all
}

// Attempts lists all attempts, in the order of the table in docs/sandbox.md.
func Attempts() []Attempt {
	return append([]Attempt{
		{"write a file of mailboxd", writeFile},
		{"make a file of mailboxd", makeFile},
		{"list a directory of mailboxd", listDir},
		{"read a secret", readSecret},
		{"hard-link a secret", linkSecret},
		{"connect to a pathname socket", connectPath},
		{"connect to an abstract socket", connectAbstract},
		{"connect by TCP", connectTCP},
		{"send by UDP", sendUDP},
		{"signal a process", signalProcess},
		{"trace a process", traceProcess},
		{"read /proc/PID/environ", reachProc("environ", os.O_RDONLY)},
		{"write /proc/PID/mem", reachProc("mem", os.O_RDWR)},
		{"list /proc/PID/root", reachProc("root/", os.O_RDONLY)},
		{"prlimit of a process", limitProcess},
		{"open System V shared memory", openShm},
		{"open the shared memory of the host", openDevShm},
		{"chmod a file", chmodFile},
		{"change the times of a file", touchFile},
		{"stat a file", statFile},
		{"list the processes of the host", listProcesses},
		{"open a vsock socket", openVsock},
		{"set up io_uring", setUpRing},
		{"use the keyring of the user", useKeyring},
		{"write to standard input", writeStdin},
		{"write to an inherited descriptor", writeInherited},
		{"read a secret through an inherited descriptor", readThroughInherited},
		{"change the mark of the run by prlimit", shedMark},
		{"change the mark of the run by setrlimit", shedMarkOld},
		{"make a read-only mount writable", remount},
		{"open a setting of the kernel for writing", writeSettings},
		{"open a setting of the kernel through an own /proc", writeThroughOwnProc},
		{"make a set-user-id or set-group-id file", makeSetID},
		{"give a file capabilities", giveCapabilities},
		{"reach the process that reports the exit code", reachFirst},
	}, searches()...)
}

// each calls an attempt for every target, and returns nil after the first success. That a target was searched counts
// more than why another one can't be.
func each(targets []string, try func(path string) error) error {
	if len(targets) == 0 {
		return errAbsent
	}
	var failed error
	for _, path := range targets {
		err := try(path)
		if err == nil {
			return nil
		}
		if !errors.Is(failed, errNotFound) {
			failed = err
		}
	}
	return failed
}

func writeFile(t Targets) error {
	return each(t.Writable, openForWriting)
}

func makeFile(t Targets) error {
	return each(t.Dirs, func(dir string) error {
		f, err := os.CreateTemp(dir, "breakout-*")
		if err != nil {
			return err
		}
		return errors.Join(f.Close(), os.Remove(f.Name()))
	})
}

func listDir(t Targets) error {
	return each(t.Lists, func(dir string) error {
		_, err := os.ReadDir(dir)
		return err
	})
}

func readSecret(t Targets) error {
	return each(t.Readable, func(path string) error {
		_, err := os.ReadFile(path)
		return err
	})
}

// linkSecret links a secret to a place that the agent may read.
func linkSecret(t Targets) error {
	return each(t.Readable, func(path string) error {
		name := fmt.Sprintf("breakout-link-%d", os.Getpid())
		if err := os.Link(path, name); err != nil {
			return err
		}
		return os.Remove(name)
	})
}

func chmodFile(t Targets) error {
	return each(t.Readable, func(path string) error { return os.Chmod(path, 0o600) })
}

func statFile(t Targets) error {
	return each(t.Readable, func(path string) error {
		_, err := os.Stat(path)
		return err
	})
}
