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

// runVariables are variables of which every run's environment has at least one.
var runVariables = []string{DirVariable, "MAILBOX_RUN_ID"}

// PartOfRun says why a process is part of a run; "" if it isn't. It is part of a run if it
// or an ancestor has a run's mark or environment, is a keeper of any build, or is this
// process. A process keeps its mark through setsid, a second fork, and the end of its
// keeper and of the daemon. A process without its mark is recognized by its keeper, or by
// its session if that keeper was killed: any session that began during the keeper's life
// may be a run's. If the facts can't be read, PartOfRun returns an error, and the caller
// should assume a part of a run.
func (k *Keepers) PartOfRun(pid int) (why string, err error) {
	return k.partOf(pid, func([]entry) int { return -1 })
}

// PartOfOwnRun is PartOfRun, but a process is no part of a run if a keeper of another directory
// hosts its run: that of another mailbox. That keeper and all above it must be no part of a run by
// their keepers or environments. Their marks say nothing: a daemon marks itself and its keeper.
func (k *Keepers) PartOfOwnRun(pid int) (why string, err error) {
	return k.partOf(pid, func(chain []entry) int {
		return slices.IndexFunc(chain, func(e entry) bool { return k.isOtherKeeper(e.PID) })
	})
}

// partOf says why a process is part of a run. Other finds the keeper of another mailbox in the chain of
// its ancestors; -1 is none.
func (k *Keepers) partOf(pid int, other func(chain []entry) int) (why string, err error) {
	if pid == os.Getpid() {
		return "", nil // this process itself
	}
	const attempts = 10 // ancestors may end meanwhile, but not for ever
	for range attempts {
		chain, err := ancestry(pid)
		if err != nil {
			return "", fmt.Errorf("inspect process %d: %w", pid, err)
		}
		keeper := other(chain)
		for i, e := range chain {
			why := k.hosted(e)
			switch {
			case why != "" || i < keeper:
			case keeper < 0:
				why, err = marked(e, i == 0)
			default:
				why, err = inEnvironment(e, false)
			}
			if err != nil {
				return "", fmt.Errorf("inspect process %d: %w", pid, err)
			}
			if why != "" {
				return why, nil
			}
		}
		again, err := ancestry(pid)
		if err == nil && slices.EqualFunc(chain, again, sameProcess) {
			return k.outlived(chain) // no PID was reused meanwhile
		}
	}
	return "", fmt.Errorf("inspect process %d: its ancestors do not stay the same", pid)
}

// outlived says why processes may belong to a run that outlived its keeper. Only the start
// time of their session shows that.
func (k *Keepers) outlived(chain []entry) (why string, err error) {
	if err := k.recordKilled(); err != nil {
		return "", err
	}
	if k.startedUnderKilled(chain) {
		return "its session began while a keeper lived that was killed; a session that begins now, such as that of a new terminal, may", nil
	}
	return "", nil
}

// ancestry lists a process and its ancestors, itself first. It ends where a parent is gone.
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

// hosted says why the descendants of a process are part of a run; "" if they needn't be.
func (k *Keepers) hosted(e entry) string {
	switch {
	case e.PID == os.Getpid():
		return "it descends from the daemon"
	case k.isKeeper(e.PID):
		return "it descends from a keeper"
	}
	return ""
}

// marked says by which mark one process is part of a run. All facts about a caller must be
// readable; an ancestor may hide its environment, as a login session does.
func marked(e entry, caller bool) (why string, err error) {
	mark, err := readMark(e.PID)
	switch {
	case mark != 0:
		return "it has the mark of a run", nil
	case err != nil && caller:
		return "", err
	}
	return inEnvironment(e, caller)
}

// inEnvironment says why one process is part of a run by its environment.
func inEnvironment(e entry, caller bool) (why string, err error) {
	env, err := readProc("/proc/" + strconv.Itoa(e.PID) + "/environ")
	if err != nil && caller && !(errors.Is(err, fs.ErrPermission) && otherUser(e.PID)) {
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

// isKeeper reports whether a process was started as a keeper of this directory: its last
// two arguments are the directory and a build.
func (k *Keepers) isKeeper(pid int) bool {
	words := k.keeperArgs(pid)
	return words != nil && words[len(words)-2] == k.argv[len(k.argv)-2] // another build differs in the last argument
}

// isOtherKeeper reports whether a process was started as a keeper of another directory.
func (k *Keepers) isOtherKeeper(pid int) bool {
	words := k.keeperArgs(pid)
	return words != nil && words[len(words)-2] != k.argv[len(k.argv)-2]
}

// keeperArgs returns the arguments of a process that was started as a keeper, of any directory; nil
// for another process.
func (k *Keepers) keeperArgs(pid int) []string {
	line, err := readProc("/proc/" + strconv.Itoa(pid) + "/cmdline")
	words := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	if err != nil || len(words) != len(k.argv) || !slices.Equal(words[1:len(words)-2], k.argv[1:len(k.argv)-2]) {
		return nil
	}
	return words
}

// otherUser reports whether a process belongs to another user, who can hide it.
func otherUser(pid int) bool {
	status, err := readProc("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(status), "\nUid:")
	ids, _, _ := strings.Cut(rest, "\n")
	fields := strings.Fields(ids)
	return len(fields) > 0 && fields[0] != strconv.Itoa(os.Getuid())
}
