package runnerssh

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
)

// A hub is the process of mailboxd-hub on the loopback interface.
type hub struct {
	url          string
	program, dir string
	port         string
	log          zerolog.Logger
	cmd          *exec.Cmd
	input        io.Closer
	stderr       *tail // read after the process has ended
}

// start starts the process, and waits until it serves. The process ends with this one, whose end closes
// its input.
func (h *hub) start(ctx context.Context, listen string) error {
	cmd := exec.CommandContext(ctx, h.program, "--dir", h.dir, "serve", "--listen", listen, "--until-input-ends", "--log-level", "warn")
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the daemon, which ends the hub last
	h.stderr = &tail{}
	cmd.Stderr = h.stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start mailboxd-hub: %w", err)
	}
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start mailboxd-hub: %w", err)
	}
	line, _ := bufio.NewReader(output).ReadString('\n')
	words := strings.Fields(line)
	if len(words) == 0 {
		_ = input.Close()
		err := cmd.Wait()
		return fmt.Errorf("start mailboxd-hub: %s", cmp.Or(strings.TrimPrefix(lastLine(h.stderr.String()), "mailboxd-hub: "), fmt.Sprint(err)))
	}
	h.url = words[len(words)-1]
	at, err := url.Parse(h.url)
	if err != nil || at.Port() == "" {
		_ = input.Close()
		return errors.Join(fmt.Errorf("start mailboxd-hub: it says %q, which is no URL", h.url), cmd.Wait())
	}
	h.port, h.cmd, h.input = at.Port(), cmd, input
	return nil
}

// close ends the process.
func (h *hub) close() error {
	_ = h.input.Close()
	return h.cmd.Wait()
}

// serve starts the hub again when it ends, at the same port, until the context ends.
func (h *hub) serve(ctx context.Context, pauses [2]time.Duration) error {
	pause := pauses[0]
	for {
		began := time.Now()
		err := h.cmd.Wait()
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > steady {
			pause = pauses[0]
		}
		h.log.Error().Err(err).Str("said", lastLine(h.stderr.String())).Msg("mailboxd-hub ended; starting it again")
		for again := true; again; {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pause):
			}
			pause = min(2*pause, pauses[1])
			if err := h.start(ctx, "127.0.0.1:"+h.port); err != nil {
				h.log.Error().Err(err).Msg("cannot start mailboxd-hub")
				continue
			}
			again = false
		}
	}
}
