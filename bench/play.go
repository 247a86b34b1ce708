package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// playWorker makes this program a worker agent instead of a benchmark.
const playWorker = "play-worker"

// answerLines answers each task line at once, as a worker.
func answerLines(in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 2<<20)
	for lines.Scan() {
		var task struct {
			ID string `json:"task_id"`
		}
		if err := json.Unmarshal(lines.Bytes(), &task); err != nil {
			fmt.Fprintln(out, err)
			continue
		}
		fmt.Fprintf(out, `{"task_id":%q,"status":"ok","output":{"summary":"done","actions":[]}}`+"\n", task.ID)
	}
}
