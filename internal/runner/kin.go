package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// runVariables are those of which the environment of each run has one at least.
var runVariables = []string{DirVariable, "MAILBOX_RUN_ID"}

// Kin says why a process is part of a run, or "" when it is not: it or one of
// its ancestors has a run's mark or environment, is a keeper of ours, of
// whatever build, or is this process. A process of a run keeps its mark through
// setsid, a second fork, and the end of its keeper and of us. One that sheds its
// mark is known by its keeper, and when that was killed by its session: each
// session that began while the keeper lived may be a run's. That which cannot
// be seen any more is an error: whoever asks should take it for part of a run.
func (k *Keepers) Kin(pid int) (why string, err error) {
	if pid == os.Getpid() {
		return "", nil // ourselves
	}
	const patience = 10 // ancestors may end while we look, but not for ever
	for range patience {
		chain, err := ancestry(pid)
		if err != nil {
			return "", fmt.Errorf("inspect process %d: %w", pid, err)
		}
		for i, e := range chain {
			why, err := k.belongs(e, i == 0)
			if err != nil {
				return "", fmt.Errorf("inspect process %d: %w", pid, err)
			}
			if why != "" {
				return why, nil
			}
		}
		again, err := ancestry(pid)
		if err == nil && slices.EqualFunc(chain, again, sameProcess) {
			return k.outlived(chain) // nobody was swapped for somebody else meanwhile
		}
	}
	return "", fmt.Errorf("inspect process %d: its ancestors do not stay the same", pid)
}

// outlived says why processes of which nothing else tells may be part of a run
// that outlived its keeper: nothing but the time tells that, until their session is
// gone.
func (k *Keepers) outlived(chain []entry) (why string, err error) {
	if err := k.noteKilled(); err != nil {
		return "", err
	}
	if k.underKilled(chain) {
		return "its session began while a keeper lived that was killed; a session that begins now, such as that of a new terminal, may", nil
	}
	return "", nil
}

// ancestry lists a process and its ancestors, itself first. It ends where one
// is gone that its child still names.
func ancestry(pid int) ([]entry, error) {
	e, ok := stat(pid)
	if !ok || !e.running() {
		return nil, errGone
	}
	chain := []entry{e}
	for e.Parent > 0 {
		if e, ok = stat(e.Parent); !ok {
			break
		}
		chain = append(chain, e)
	}
	return chain, nil
}

var errGone = errors.New("it is gone")

func sameProcess(a, b entry) bool { return a.PID == b.PID && a.Start == b.Start }

// belongs says why one process is part of a run. Of a caller all must be seen;
// an ancestor may hide its environment, as a login session does.
func (k *Keepers) belongs(e entry, caller bool) (why string, err error) {
	switch {
	case e.PID == os.Getpid():
		return "it descends from the daemon", nil
	case k.isKeeper(e.PID):
		return "it descends from a keeper", nil
	}
	marked, err := readMark(e.PID)
	switch {
	case marked != 0:
		return "it has the mark of a run", nil
	case err != nil && caller:
		return "", err
	}
	env, err := readProc("/proc/" + strconv.Itoa(e.PID) + "/environ")
	if err != nil && caller && !(errors.Is(err, fs.ErrPermission) && foreign(e.PID)) {
		return "", err
	}
	for variable := range strings.SplitSeq(string(env), "\x00") {
		name, _, _ := strings.Cut(variable, "=")
		if slices.Contains(runVariables, name) {
			return "it has " + name + " in its environment", nil
		}
	}
	return "", nil
}

// isKeeper reports whether a process was started as a keeper of our directory:
// its last two arguments are that and a build.
func (k *Keepers) isKeeper(pid int) bool {
	line, err := readProc("/proc/" + strconv.Itoa(pid) + "/cmdline")
	words := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	ours := k.argv[:len(k.argv)-1] // another build has the rest in common
	return err == nil && len(words) == len(k.argv) && slices.Equal(words[1:len(ours)], ours[1:])
}

// foreign reports whether a process is another user's, who may hide it from us.
func foreign(pid int) bool {
	status, err := readProc("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(status), "\nUid:")
	ids, _, _ := strings.Cut(rest, "\n")
	fields := strings.Fields(ids)
	return len(fields) > 0 && fields[0] != strconv.Itoa(os.Getuid())
}
