package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// gatewayTasks is the number of tasks of each way, one after the other.
const gatewayTasks = 500

// throughGateway measures tasks that an A2A client sends, each until its answer, and the same tasks as lines of a
// file, each until its result file. The two ways take turns with the same daemon.
func throughGateway(ctx context.Context, l *lab) ([]row, error) {
	count := min(l.tasks, gatewayTasks)
	rows := []row{
		{who: "line to result, p50", tasks: count, unit: "ms"}, {who: "through the gateway, p50", tasks: count, unit: "ms"},
		{who: "through the gateway, p99", tasks: count, unit: "ms"}, {who: "RSS of the gateway", unit: "MB"},
	}
	for range l.rounds {
		err := l.in(ctx, func(dir string) error {
			figures, err := l.gatewayRound(ctx, dir, count)
			for i, figure := range figures {
				rows[i].got = append(rows[i].got, figure)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// gatewayRound returns the figures of a round.
func (l *lab) gatewayRound(ctx context.Context, dir string, count int) (figures []float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit(count))
	defer cancel()
	p := processes(2, l.tools.static)
	token := "token-of-a-measure"
	p.more = fmt.Sprintf("senders:\n  - {name: client, token: %x}\n", sha256.Sum256([]byte(token)))
	err = l.served(dir, p, 2*count, func(h *daemon, results *tally) error {
		if err := h.start(ctx); err != nil {
			return err
		}
		err := h.awaitReady(ctx)
		if err == nil {
			figures, err = measureGateway(ctx, h, results, token, count)
		}
		return errors.Join(err, h.stop())
	})
	return figures, err
}

// measureGateway sends the tasks of both ways by turns.
func measureGateway(ctx context.Context, h *daemon, results *tally, token string, count int) ([]float64, error) {
	g, err := h.startGateway(ctx, token)
	if err != nil {
		return nil, err
	}
	defer g.stop()
	var lines, sent []float64
	for n := range count {
		took, err := timeLine(ctx, h, results, n)
		if err != nil {
			return nil, err
		}
		lines = append(lines, took)
		if took, err = g.timeTask(ctx, n); err != nil {
			return nil, err
		}
		sent = append(sent, took)
	}
	now, err := status(g.cmd.Process.Pid)
	return []float64{quantile(lines, 0.5), quantile(sent, 0.5), quantile(sent, 0.99), now.rss / 1e6}, err
}

// timeLine appends a line and waits for its result file. It returns how long that took, in ms.
func timeLine(ctx context.Context, h *daemon, results *tally, n int) (float64, error) {
	began := time.Now()
	if err := appendLines(h.tasks(), n, n+1); err != nil {
		return 0, err
	}
	for !results.seen[id(n)] {
		if _, _, err := results.next(ctx); err != nil {
			return 0, err
		}
	}
	return time.Since(began).Seconds() * 1000, nil
}

// A runningGateway is a gateway of a mailbox, and the client that it admits.
type runningGateway struct {
	cmd   *exec.Cmd
	url   string // for JSON-RPC
	token string
}

// startGateway starts a gateway of the mailbox.
func (h *daemon) startGateway(ctx context.Context, token string) (*runningGateway, error) {
	cmd := h.command(ctx, "gateway", "--listen", "127.0.0.1:0", "--rate", "1000")
	cmd.Stderr = os.Stderr
	url, err := startServer(cmd)
	return &runningGateway{cmd: cmd, url: url + "/", token: token}, err
}

func (g *runningGateway) stop() { endServer(g.cmd) }

// timeTask sends a task and waits for its answer, as an A2A client does. It returns how long that took, in ms.
func (g *runningGateway) timeTask(ctx context.Context, n int) (float64, error) {
	const form = `{"jsonrpc":"2.0","id":%[1]d,"method":"SendMessage","params":{"message":` +
		`{"messageId":"m-%[1]d","role":"ROLE_USER","parts":[{"text":"a task of the bench"},{"data":{"text":"%[2]s"}}]}}}`
	body := fmt.Sprintf(form, n, strings.Repeat("x", lineSize/2))
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+g.token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("A2A-Version", "1.0")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	took := time.Since(began).Seconds() * 1000
	if err == nil && !bytes.Contains(text, []byte(`"TASK_STATE_COMPLETED"`)) {
		err = fmt.Errorf("task %d: the gateway answered %s with %.500s", n, resp.Status, text)
	}
	return took, err
}
