package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/rogpeppe/go-internal/testscript"

	"mailboxd/internal/access/client"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/decisions/task"
	"mailboxd/mailbox"
	"mailboxd/watcher"
)

// taskFile is where AINL programs append their tasks.
const taskFile = "box/tasks/openclaw_agent_tasks.jsonl"

// words are what the scripts can say beyond testscript's own commands.
var vocabulary = map[string]func(*testscript.TestScript, bool, []string){
	"task":       sendTask,
	"bytes":      appendBytes,
	"longline":   sendLong,
	"soon":       setSoon,
	"field":      field,
	"exitcode":   exitCodeOf,
	"waitfor":    awaitFile,
	"waitstate":  awaitState,
	"waitlog":    awaitLog,
	"until":      awaitSuccess,
	"oneday":     stayInDay,
	"signal":     signalDaemon,
	"keepers":    awaitKeepers,
	"killkeeper": killKeepers,
	"typing":     typeConfirmed,
	"nothing":    awaitNothing,
	"gates":      awaitGates,
	"tmpfs":      mountSmall,
	"fill":       fillUp,
	"lockdb":     lockLedger,
	"unlockdb":   unlockLedger,
	"nofile":     limitFiles,
	"sql":        changeLedger,
	"sshagent":   startSSHAgent,
	"strict":     holdToDialects,
	"ask":        sendRequest,
	"answered":   awaitAnswer,
	"wellformed": holdRequests,
	"recorded":   compareStream,
	"signed":     sendSigned,
	"a2aprogram": findA2A,
	"machine":    startMachine,
	"hubprogram": buildHub,
}

// sendTask appends a task line: task ID [AGENT [MEMBERS]]. Members, such as
// "deadline":null, replace those of the usual line or come behind them.
func sendTask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 3 {
		ts.Fatalf("usage: task id [agent [members]]")
	}
	agent, members := "worker", ""
	if len(args) > 1 && args[1] != "" {
		agent = args[1]
	}
	if len(args) > 2 {
		members = args[2]
	}
	appendTo(ts, taskFile, taskLine(args[0], agent, members)+"\n")
}

// taskLine is a valid request, but for what members make of it.
func taskLine(id, agent, members string) string {
	fields := []string{
		`"schema_version":"1.0"`, fmt.Sprintf(`"task_id":"%s"`, id), `"requester_id":"tester"`,
		fmt.Sprintf(`"target_agent":"%s"`, agent), `"target_role":"executor"`, `"task_type":"work"`,
		`"description":"a task"`, `"input":{"refs":[],"payload":{}}`,
	}
	if members != "" {
		fields = slices.DeleteFunc(fields, func(f string) bool {
			name, _, _ := strings.Cut(f, ":")
			return strings.Contains(members, name+":")
		})
		fields = append(fields, members)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// appendBytes appends a Go string, escapes and all, to a file. TASK(id) and
// TASK(id|members) stand for whole task lines in it.
func appendBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: bytes file text")
	}
	text := args[1]
	for strings.Contains(text, "TASK(") {
		before, rest, _ := strings.Cut(text, "TASK(")
		inside, after, _ := strings.Cut(rest, ")")
		id, members, _ := strings.Cut(inside, "|")
		text = before + taskLine(id, "worker", members) + after
	}
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	ts.Check(err)
	appendTo(ts, args[0], text)
}

func appendTo(ts *testscript.TestScript, name, text string) {
	path := ts.MkAbs(name)
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o700))
	ts.Check(appendFile(path, text))
}

func appendFile(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// setSoon sets a variable to a time from now, as a JSON string: soon AT 2s.
func setSoon(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: soon variable duration")
	}
	d, err := time.ParseDuration(args[1])
	ts.Check(err)
	ts.Setenv(args[0], time.Now().Add(d).UTC().Format(`"`+time.RFC3339Nano+`"`))
}

// field looks into a JSON file: field FILE error.kind timeout. A string must
// contain the text; any other value must be it, as JSON.
func field(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: field file path want")
	}
	var value jsontext.Value = []byte(ts.ReadFile(args[0]))
	for name := range strings.SplitSeq(args[1], ".") {
		var members map[string]jsontext.Value
		if err := json.Unmarshal(value, &members); err != nil {
			ts.Fatalf("field %s %s: %v", args[0], args[1], err)
		}
		value = members[name]
	}
	matches := string(value) == args[2]
	if value.Kind() == '"' {
		var got string
		ts.Check(json.Unmarshal(value, &got))
		matches = strings.Contains(got, args[2])
	}
	if matches == neg {
		ts.Fatalf("field %s %s = %s; want (negated: %v) %s", args[0], args[1], value, neg, args[2])
	}
}

// exitCodeOf runs a command and compares its exit code: exitcode 4 mailboxd ...
func exitCodeOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode code command args...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d; want %s", code, args[0])
	}
}

// awaitFile blocks until a file exists and, with a second argument, holds a text.
// Negated, it blocks until the file does not exist, or does not hold the text.
func awaitFile(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: [!] waitfor file [text]")
	}
	path := ts.MkAbs(args[0])
	await(ts, args, filepath.Dir(path), func() bool {
		text, err := os.ReadFile(path)
		there := err == nil && (len(args) == 1 || strings.Contains(string(text), args[1]))
		return there != neg
	})
}

// awaitState blocks until a task is in a state, as ps tells it. It reads in this process, since ps again and
// again would take a processor from what the script waits for.
func awaitState(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitstate id state")
	}
	location, wanted := mailboxOf(ts), reader.Query{Filter: client.Filter{States: []task.State{task.State(args[1])}}}
	await(ts, args, ts.MkAbs("."), func() bool {
		found := false
		err := location.Read(context.Background(), func(ctx context.Context, r *reader.Reader) error {
			return r.Each(ctx, wanted, func(page []client.Task) error {
				found = found || slices.ContainsFunc(page, func(t client.Task) bool { return string(t.ID) == args[0] })
				return nil
			})
		})
		return err == nil && found
	})
}

// mailboxOf is where the mailbox of a script is, for what its environment says.
func mailboxOf(ts *testscript.TestScript) reader.Location {
	root := ts.Getenv("AINL_AGENT_ROOT")
	state := ts.Getenv("MAILBOXD_STATE_DIR")
	if state == "" {
		slug, err := mailbox.Slug(root)
		ts.Check(err)
		state = filepath.Join(ts.Getenv("XDG_STATE_HOME"), "mailboxd", slug)
	}
	return reader.Location{Root: root, StateDir: state}
}

// awaitSuccess runs a program again until it exits with 0: until mailboxd route explain t1. Its
// output is that of the last time.
func awaitSuccess(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: until program [args]")
	}
	await(ts, args, ts.MkAbs("."), func() bool { return ts.Exec(args[0], args[1:]...) == nil })
}

// awaitLog blocks until the daemon's log, which a script sent to the file
// named log, holds a text.
func awaitLog(ts *testscript.TestScript, neg bool, args []string) {
	awaitFile(ts, neg, append([]string{"log"}, args...))
}

// signalDaemon sends a signal to what was started in the background: signal TERM.
func signalDaemon(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}
	if neg || len(args) != 1 || signals[args[0]] == nil {
		ts.Fatalf("usage: signal TERM|HUP|KILL")
	}
	sent := 0
	for _, cmd := range ts.BackgroundCmds() {
		err := cmd.Process.Signal(signals[args[0]])
		if sent > 0 && errors.Is(err, os.ErrProcessDone) {
			continue // it ends with the daemon, which has the signal already
		}
		ts.Check(err)
		sent++
	}
}

// awaitKeepers blocks until so many keepers of the script's mailbox live.
func awaitKeepers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: keepers number")
	}
	await(ts, args, ts.MkAbs("."), func() bool { return strconv.Itoa(len(keepersOf(ts))) == args[0] })
}

// killKeepers kills the keepers of the script's mailbox.
func killKeepers(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: killkeeper")
	}
	for _, pid := range keepersOf(ts) {
		ts.Check(syscall.Kill(pid, syscall.SIGKILL))
	}
}

// awaitGates blocks until so many gates of the script's mailbox live: their environment is that
// of the keeper.
func awaitGates(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: gates number")
	}
	await(ts, args, ts.MkAbs("."), func() bool {
		own := processesWith("environ", "XDG_STATE_HOME="+ts.Getenv("XDG_STATE_HOME")+"\x00")
		others := func(pid int) bool { return !slices.Contains(own, pid) }
		gates := slices.DeleteFunc(processesWith("cmdline", "mailboxd\x00gate\x00"), others)
		return strconv.Itoa(len(gates)) == args[0]
	})
}

func keepersOf(ts *testscript.TestScript) []int {
	return processesWith("cmdline", "keeper\x00"+ts.Getenv("XDG_STATE_HOME")+"/")
}

// awaitNothing blocks until no process of an agent of the script is left.
func awaitNothing(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: nothing")
	}
	await(ts, []string{"nothing to be left"}, ts.MkAbs("."), func() bool {
		runs := ts.Getenv("XDG_STATE_HOME") + "/"
		links, _ := filepath.Glob("/proc/[0-9]*/cwd") // a run's are in its directory
		return len(processesWith("environ", "MAILBOX_RUN_DIR="+runs)) == 0 &&
			!slices.ContainsFunc(links, func(link string) bool {
				dir, err := os.Readlink(link)
				return err == nil && strings.HasPrefix(dir, runs)
			})
	})
}

// processesWith lists the processes of which a file in /proc holds a text.
func processesWith(file, text string) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/" + file)
	var pids []int
	for _, path := range files {
		if content, err := os.ReadFile(path); err == nil && strings.Contains(string(content), text) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// await looks until it sees what it waits for. A daemon that never gets there
// fails the script after two minutes. A look that takes long, such as one that starts a
// program, is followed by a pause of twice its time.
func await(ts *testscript.TestScript, what []string, dir string, seen func() bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	met, next := false, time.Now()
	ts.Check(watcher.Watch(ctx, []string{dir}, 50*time.Millisecond, func() {
		began := time.Now()
		if met || began.Before(next) {
			return
		}
		if met = seen(); met {
			cancel()
		}
		next = time.Now().Add(2 * time.Since(began))
	}))
	if !met {
		ts.Fatalf("waited two minutes for %s", strings.Join(what, " "))
	}
}
