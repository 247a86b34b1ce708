package api

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"mailboxd/dispatch"
	"mailboxd/internal/access/client"
	"mailboxd/internal/access/replay"
	"mailboxd/internal/decisions/task"
)

// Matches reports whether a task has all words, and whether a search looks for them in it.
func Matches(row task.Task, line []byte, words ...string) (has, looks bool) {
	return matches(described(row, line), words, nil), mayMatch(row, line, words)
}

// KeptSubjects returns how many finished tasks a stream keeps that has seen n of them.
func KeptSubjects(n int) int {
	v := (&Records{}).eventStore()
	for seq := range n {
		v.keep(replay.Subject{Row: task.Task{Seq: int64(seq)}})
	}
	return len(v.done)
}

// Changing lists the paths of all requests that change something. A POST to /route only has a
// task line in its body.
func Changing() (paths []string) {
	d := &Server{engine: &dispatch.Dispatcher{}}
	for _, r := range d.routes() {
		if r.method != "GET" && r.path != "/route" {
			paths = append(paths, r.path)
		}
	}
	return paths
}

// Paths lists the requests of the control socket, and those of the approvers' socket.
func Paths() (control, approvers []string) {
	d := &Server{engine: &dispatch.Dispatcher{}}
	for _, r := range d.routes() {
		control = append(control, r.method+" "+client.Base+r.path)
	}
	for _, r := range d.groupRoutes() {
		approvers = append(approvers, r.method+" "+client.Base+r.path)
	}
	return append(control, "GET "+client.Base+"/events", "GET "+client.Base+"/clutch/events", "GET /metrics"), approvers
}

// StaysAlive reports whether this process counts as alive each of n times.
func StaysAlive(n int) (bool, error) {
	pidfd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return false, err
	}
	p := peer{pid: os.Getpid(), process: os.NewFile(uintptr(pidfd), "pidfd")}
	defer func() { _ = p.process.Close() }()
	for range n {
		if !p.alive() {
			return false, nil
		}
	}
	return true, nil
}

// ConfirmAtTerminal asks at the controlling terminal of a process.
func ConfirmAtTerminal(ctx context.Context, process *os.Process, question, shown string) (string, error) {
	pidfd, err := unix.PidfdOpen(process.Pid, 0)
	if err != nil {
		return "", err
	}
	p := peer{pid: process.Pid, uid: os.Getuid(), process: os.NewFile(uintptr(pidfd), "pidfd")}
	defer func() { _ = p.process.Close() }()
	return confirmAtTerminal(ctx, p, question, shown)
}
