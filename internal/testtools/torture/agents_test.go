package torture_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
)

// A heard request is what an agent needs of one.
type received struct {
	ID    string `json:"task_id"`
	Input struct {
		Payload struct {
			Version int `json:"version"`
		} `json:"payload"`
	} `json:"input"`
}

func (h received) words() string { return fmt.Sprintf("%s v%d", h.ID, h.Input.Payload.Version) }

// play is an agent: its part, and the file in which it signs before it does
// anything else. What is signed there was executed, whatever became of it.
func play(part string, args []string) {
	if part == "child" {
		time.Sleep(time.Hour)
		return
	}
	if part == "worker" {
		answerLines()
		return
	}
	text, err := io.ReadAll(os.Stdin)
	diary := args[0]
	if part == "speak" && err == nil {
		speak(diary, text)
		return
	}
	var request received
	if err == nil {
		err = json.Unmarshal(text, &request)
	}
	if err != nil {
		panic(err)
	}
	sign(diary, "began", request)
	switch part {
	case "slow":
		time.Sleep(time.Second + rand.N(time.Second))
	case "crash":
		crash()
	case "fork":
		fork()
	case "again":
		if rand.N(2) == 0 {
			sign(diary, "again", request)
			os.Exit(75)
		}
	case "boxed", "gated":
		inSandbox(diary, request)
	case "file":
		answerInFile(request)
		return
	case "login":
		logIn(diary, request)
		return
	}
	fmt.Printf(`{"status":"ok","output":{"summary":%q,"actions":[]}}`+"\n", request.words())
}

// answerLines is a worker: a line for each line.
func answerLines() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var request received
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			panic(err)
		}
		fmt.Printf(`{"task_id":%q,"status":"ok","output":{"summary":%q,"actions":[]}}`+"\n", request.ID, request.words())
	}
}

// sign appends one line in one write.
func sign(diary, what string, request received) {
	file, err := os.OpenFile(diary, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	fmt.Fprintf(file, "%s %s %d %s %s\n", what, request.ID, request.Input.Payload.Version,
		os.Getenv("MAILBOX_ATTEMPT"), os.Getenv("MAILBOX_RUN_ID"))
}

// logIn answers as Claude Code does, which is not always logged in. Then it has
// done nothing, and asks another attempt follows.
func logIn(diary string, request received) {
	const line = `{"type":"result","subtype":"success","is_error":%t,"result":%q,"session_id":"s","total_cost_usd":0,"usage":{"input_tokens":0,"output_tokens":0}}` + "\n"
	if rand.N(2) == 0 {
		sign(diary, "again", request)
		fmt.Printf(line, true, "Not logged in · Please run /login")
		os.Exit(1)
	}
	fmt.Printf(line, false, request.words())
}

// crash ends the agent in one of several bad ways.
func crash() {
	if rand.N(2) == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	fmt.Print(`{"status":"ok","output":{"summ`)
	os.Exit(3)
}

// fork leaves a child behind that holds our standard output open.
func fork() {
	child := exec.Command(os.Args[0], "agent", "child")
	child.Stdout = os.Stdout
	if err := child.Start(); err != nil {
		panic(err)
	}
}

func answerInFile(request received) {
	fmt.Println("chatting {away")
	published := filepath.Join(os.Getenv("MAILBOX_RUN_DIR"), "published")
	if err := os.WriteFile(published, bytes.Repeat([]byte(request.words()), 10_000), 0o600); err != nil {
		panic(err)
	}
	const refs = `[{"kind":"words","uri":"file:published"}]`
	text := fmt.Sprintf(`{"status":"ok","output":{"summary":%q,"actions":[]},"artifact_refs":%s}`, request.words(), refs)
	if err := os.WriteFile(os.Getenv("MAILBOX_RESULT_FILE"), []byte(text), 0o600); err != nil {
		panic(err)
	}
}
