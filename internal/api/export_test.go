package api

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"mailboxd/dispatch"
)

// Changing lists the paths of all requests that change something.
func Changing() (paths []string) {
	d := &Server{engine: &dispatch.Dispatcher{}}
	for _, r := range d.routes() {
		if r.method != "GET" {
			paths = append(paths, r.path)
		}
	}
	return paths
}

// ConfirmAtTerminal asks at the controlling terminal of a process.
func ConfirmAtTerminal(ctx context.Context, process *os.Process, question string) (string, error) {
	pidfd, err := unix.PidfdOpen(process.Pid, 0)
	if err != nil {
		return "", err
	}
	p := peer{pid: process.Pid, uid: os.Getuid(), process: os.NewFile(uintptr(pidfd), "pidfd")}
	defer func() { _ = p.process.Close() }()
	return confirmAtTerminal(ctx, p, question)
}
