// Command shout is a worker for mailboxd that says things louder.
package main

import (
	"strings"

	"mailboxd/examples/workers/worker"
)

func main() {
	worker.Serve(func(t worker.Task) (worker.Output, error) {
		return worker.Output{"summary": strings.ToUpper(t.Description), "actions": []any{}}, nil
	})
}
