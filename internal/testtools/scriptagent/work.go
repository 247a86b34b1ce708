package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// work is a worker that does what a task's description asks for.
func work() {
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var task struct {
			TaskID      string `json:"task_id"`
			Description string `json:"description"`
		}
		if err := json.Unmarshal(line, &task); err != nil {
			panic(err)
		}
		switch task.Description {
		case "die":
			fmt.Fprintln(os.Stderr, "it was too much for me")
			os.Exit(9)
		case "die once":
			if first(task.TaskID) {
				os.Exit(9)
			}
		case "hang":
			select {}
		case "hang once":
			if first(task.TaskID) {
				select {}
			}
		case "try again":
			if first(task.TaskID) {
				os.Exit(75)
			}
		case "meddle":
			again("HOW=middle").Wait()
			for missing(os.Getenv("OUT")) {
				time.Sleep(5 * time.Millisecond)
			}
		case "chat":
			fmt.Println("thinking about it ...")
		}
		fmt.Printf(`{"task_id":%q,"status":"ok","output":{"summary":"did it","actions":[],"pid":%d}}`+"\n", task.TaskID, os.Getpid())
	}
}

// first reports whether nobody has asked for this id before, in $SEEN.
func first(id string) bool {
	f, err := os.OpenFile(filepath.Join(os.Getenv("SEEN"), id), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
