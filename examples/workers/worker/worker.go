// Package worker is what a worker of mailboxd does besides its work: it reads
// a line for each task, and prints a line for its result.
package worker

import (
	"encoding/json"
	"os"
	"sync"
)

// A Task is what a worker needs to know of one; its envelope has more.
type Task struct {
	ID          string `json:"task_id"`
	Description string `json:"description"`
	Input       struct {
		Payload json.RawMessage `json:"payload"`
	} `json:"input"`
}

// An Output is what becomes of a task. It should have a "summary".
type Output map[string]any

// Serve calls do for each task, at the same time for as many as mailboxd hands
// over, and returns when there are no more. What do returns is the output, or
// the error.
func Serve(do func(Task) (Output, error)) {
	tasks, results := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	var printing sync.Mutex // guards results
	var working sync.WaitGroup
	defer working.Wait()
	for {
		var task Task
		if tasks.Decode(&task) != nil {
			return
		}
		working.Go(func() {
			result := map[string]any{"task_id": task.ID, "status": "ok"}
			output, err := do(task)
			if err != nil {
				result["status"], result["error"] = "error", map[string]string{"kind": "agent_error", "message": err.Error()}
			} else {
				result["output"] = output
			}
			printing.Lock()
			defer printing.Unlock()
			results.Encode(result)
		})
	}
}
