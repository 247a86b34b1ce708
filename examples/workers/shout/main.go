// Command shout is a worker for mailboxd: every line it reads is a task, and
// every line it prints is a result.
package main

import (
	"encoding/json"
	"os"
	"strings"
)

type object = map[string]any

func main() {
	tasks, results := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var task struct {
			TaskID      string `json:"task_id"`
			Description string `json:"description"`
		}
		if tasks.Decode(&task) != nil {
			return // there are no more, and we are to go
		}
		output := object{"summary": strings.ToUpper(task.Description), "actions": []any{}}
		results.Encode(object{"task_id": task.TaskID, "status": "ok", "output": output})
	}
}
