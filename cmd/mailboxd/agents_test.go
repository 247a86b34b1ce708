package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// agents are the parts the test binary plays, well and badly behaved.
var agents = map[string]func(){
	"echo":        func() { answer("heard: " + string(request())) },
	"ok":          func() { answer("done") },
	"text":        func() { fmt.Println("plain words") },
	"count":       count,
	"exit3":       func() { os.Exit(3) },
	"exit75":      func() { os.Exit(75) },
	"second-time": secondTime,
	"exit3-ok":    func() { answer("done before it broke"); os.Exit(3) },
	"junk":        func() { fmt.Println("segmentation fault (core dumped)") },
	"half-json":   func() { fmt.Print(`{"schema_version":"1.0","status":"ok","output":{"summ`) },
	"flood":       flood,
	"hang":        func() { select {} },
	"ignore-term": ignoreTerm,
	"fork":        fork,
	"deaf":        func() { answer("I did not read anything") },
	"imposter":    func() { fmt.Println(`{"task_id":"somebody-else","status":"ok","output":{"summary":"not mine"}}`) },
	"self-kill":   func() { syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} },
	"env":         func() { answer(strings.Join(os.Environ(), "\n")) },
	"until-told":  untilTold,
	"result-file": inResultFile,
	"fenced": func() {
		fmt.Print("Here you are:\n```json\n{\"status\":\"ok\",\"output\":{\"summary\":\"from a fence\"}}\n```\n")
	},
	"banner": func() {
		fmt.Print("\x1b[32mstarting\x1b[0m v1.2\n{\"status\":\"ok\",\"output\":{\"summary\":\"after a banner\"}}\n")
	},
	"two-answers": func() {
		fmt.Println(`{"task_id":"a","output":{"summary":"one"}}`)
		fmt.Println(`{"task_id":"b","output":{"summary":"two"}}`)
	},
	"bare-output": func() { fmt.Println(`{"summary":"only the output","actions":[],"mood":"fine"}`) },
	"worker":      work,
	"spendthrift": func() {
		fmt.Println(`{"status":"ok","output":{"summary":"costly"},"cost_used":{"tokens":3001,"usd_cents":1}}`)
	},
}

func request() []byte {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	return text
}

func answer(summary string) {
	fmt.Printf(`{"status":"ok","output":{"summary":%q,"actions":[]}}`+"\n", strings.ToValidUTF8(summary, "?"))
}

// count appends a mark to $COUNT, so that a script can see how often it ran.
func count() {
	file, err := os.OpenFile(os.Getenv("COUNT"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(file, os.Getenv("MAILBOX_TASK_ID"), "attempt", os.Getenv("MAILBOX_ATTEMPT"))
	file.Close()
	answer("ran: " + string(request()))
}

// secondTime asks to be tried again, once.
func secondTime() {
	if os.Getenv("MAILBOX_ATTEMPT") == "1" {
		os.Exit(75)
	}
	count()
}

// flood prints one gigabyte.
func flood() {
	line := bytes.Repeat([]byte("all work and no play makes jack a dull boy "), 1<<10)
	for written := 0; written < 1<<30; written += len(line) {
		if _, err := os.Stdout.Write(line); err != nil {
			os.Exit(1)
		}
	}
}

func ignoreTerm() {
	signal.Ignore(syscall.SIGTERM)
	fmt.Println("you will have to kill me")
	select {}
}

// fork leaves a child behind that holds standard output open.
func fork() {
	child := exec.Command("sleep", "1000")
	child.Stdout = os.Stdout
	if err := child.Start(); err != nil {
		panic(err)
	}
	answer(fmt.Sprintf("left %d behind", child.Process.Pid))
}

// untilTold works until the file $GO_ON exists.
func untilTold() {
	os.WriteFile(os.Getenv("GO_ON")+".started", nil, 0o600)
	for {
		if _, err := os.Stat(os.Getenv("GO_ON")); err == nil {
			answer("was told to go on")
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// inResultFile answers in its result file and chats on standard output.
func inResultFile() {
	fmt.Println("chatting away {not json}")
	text := `{"status":"partial","output":{"summary":"half of it"},"confidence":0.5}`
	if err := os.WriteFile(os.Getenv("MAILBOX_RESULT_FILE"), []byte(text), 0o600); err != nil {
		panic(err)
	}
}
