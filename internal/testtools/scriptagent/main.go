// Program scriptagent plays the agents of the scripts of mailboxd, well and badly behaved. It needs little more than the
// standard library, so it starts in a tenth of the time of the binary of the tests, which plays the others.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// agents are what it plays, by the first argument.
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
	"escape":      escape,
	"overstay":    overstay,
	"linger": func() {
		os.WriteFile(os.Getenv("MAILBOX_RESULT_FILE"), []byte(`{"status":"ok","output":{"summary":"said all"}}`), 0o600)
		select {}
	},
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
	"act":   act,
	"steal": steal,
	"clowl": func() {
		request()
		fmt.Println(`{"p":"DONE","task":"test","data":{"summary":"ready, in CLowl"}}`)
	},
	"cap":          func() { request(); fmt.Println(`{"content":"ready, in CAP"}`) },
	"bare-output":  func() { fmt.Println(`{"summary":"only the output","actions":[],"mood":"fine"}`) },
	"worker":       work,
	"meddle":       meddle,
	"order-keeper": orderKeeper,
	"reach":        reachSockets,
	"reporter":     reporter,
	"delegate":     delegate,
	"spendthrift": func() {
		fmt.Println(`{"status":"ok","output":{"summary":"costly"},"cost_used":{"tokens":3001,"usd_cents":1}}`)
	},
}

func main() { agents[os.Args[1]]() }

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
	appendLine(os.Getenv("COUNT"), os.Getenv("MAILBOX_TASK_ID")+" attempt "+os.Getenv("MAILBOX_ATTEMPT"))
	answer("ran: " + string(request()))
}

// secondTime asks for another attempt, once.
func secondTime() {
	if os.Getenv("MAILBOX_ATTEMPT") == "1" {
		os.Exit(75)
	}
	count()
}

func appendLine(path, text string) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if _, err := fmt.Fprintln(file, text); err != nil {
		panic(err)
	}
}

// escape leaves behind what tries hard to stay: a child of a child, in a session
// of its own, with an empty environment and deaf to SIGTERM.
func escape() {
	switch os.Getenv("ESCAPE") {
	case "":
		spawn("ESCAPE=middle", "MAILBOX_RUN_DIR="+os.Getenv("MAILBOX_RUN_DIR"))
		answer("left something behind")
	case "middle": // its parent waits for it, so that the child is an orphan by then
		spawn("ESCAPE=child")
	case "child":
		signal.Ignore(syscall.SIGTERM)
		os.NewFile(3, "ready").Close()
		time.Sleep(time.Hour)
	}
}

// overstay starts what tries hard to stay, and stays with it.
func overstay() {
	spawn("ESCAPE=middle")
	ignoreTerm()
}

// spawn starts the same agent again, and waits until it is ready or gone.
func spawn(env ...string) {
	reader, writer, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	child := exec.Command("/proc/self/exe", "escape")
	child.Args[0] = "agent"
	child.Env, child.Stdout, child.ExtraFiles = env, os.Stdout, []*os.File{writer}
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		panic(err)
	}
	writer.Close()
	io.ReadAll(reader)
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
	if ready := os.Getenv("READY"); ready != "" {
		appendLine(ready, "deaf")
	}
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

// untilTold works until the file $GO_ON exists, and exits with $STATUS. It
// tells that it began, each time that it does. It ends with its script, too.
func untilTold() {
	appendLine(os.Getenv("GO_ON")+".started", fmt.Sprint("process ", os.Getpid()))
	for {
		if _, err := os.Stat(os.Getenv("GO_ON")); err == nil {
			more, _ := strconv.Atoi(os.Getenv("MORE"))
			answer("was told to go on" + strings.Repeat(".", more))
			status, _ := strconv.Atoi(os.Getenv("STATUS"))
			os.Exit(status)
		}
		if _, err := os.Stat(filepath.Dir(os.Getenv("GO_ON"))); errors.Is(err, fs.ErrNotExist) {
			os.Exit(1)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// reporter answers half, says what it has spent when it is told to, and goes on.
func reporter() {
	answer("half of it")
	appendLine(os.Getenv("MAILBOX_PROGRESS_FILE"), `{"cost_used":{"tokens":2999,"usd_cents":4},"progress":0.9}`)
	appendLine(os.Getenv("GO_ON")+".started", os.Getenv("MAILBOX_BUDGET_TOKENS"))
	for {
		if _, err := os.Stat(os.Getenv("GO_ON")); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	appendLine(os.Getenv("MAILBOX_PROGRESS_FILE"), `{"cost_used":{"tokens":3001,"usd_cents":4}}`)
	select {}
}

// delegate asks another agent, and itself, and waits for what they answer.
func delegate() {
	root := os.Getenv("AINL_AGENT_ROOT")
	for id, agent := range map[string]string{"child": "ok", "again": "delegate"} {
		appendLine(filepath.Join(root, "tasks", "delegate.jsonl"), fmt.Sprintf(`{"schema_version":"1.0","task_id":%q,"requester_id":"delegate",`+
			`"target_agent":%q,"target_role":"executor","task_type":"work","description":"a task","input":{"refs":[],"payload":{}},`+
			`"metadata":{"mbx.parent_task_id":%q}}`, id, agent, os.Getenv("MAILBOX_TASK_ID")))
	}
	for _, id := range []string{"child", "again"} {
		for {
			if _, err := os.Stat(filepath.Join(root, "results", id+".json")); err == nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	answer("they have answered")
}

// inResultFile answers in its result file and chats on standard output.
func inResultFile() {
	fmt.Println("chatting away {not json}")
	text := `{"status":"partial","output":{"summary":"half of it"},"confidence":0.5}`
	if err := os.WriteFile(os.Getenv("MAILBOX_RESULT_FILE"), []byte(text), 0o600); err != nil {
		panic(err)
	}
}
