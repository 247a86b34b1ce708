package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/testscript"

	"mailboxd/internal/access/client"
)

// call asks the control socket, as a program does that has only the connection:
// otheragent call PATH BODY. It prints the answer.
func call() {
	web := http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return dialControl(), nil },
	}}
	answer, err := web.Post("http://mailboxd/v1/"+os.Args[2], "application/json", strings.NewReader(os.Args[3]))
	if err != nil {
		panic(err)
	}
	io.Copy(os.Stdout, answer.Body)
}

// changeLedger runs SQL on a ledger without a daemon, as a hostile program may: sql GLOB STATEMENT.
func changeLedger(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sql glob statement")
	}
	found, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(found) != 1 {
		ts.Fatalf("sql: %q; want one ledger", found)
	}
	db, err := sql.Open("sqlite", found[0])
	ts.Check(err)
	defer db.Close()
	_, err = db.Exec(args[1])
	ts.Check(err)
}

// startSSHAgent starts an ssh-agent at a socket until the end of the script: sshagent SOCKET. The
// variable SSH_AUTH_SOCK names it.
func startSSHAgent(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: sshagent")
	}
	dir, err := os.MkdirTemp("", "ssh") // shorter than the script's directory: a socket's path has a limit
	ts.Check(err)
	socket := filepath.Join(dir, "s")
	cmd := exec.Command("ssh-agent", "-D", "-a", socket)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() { cmd.Process.Kill(); cmd.Wait(); os.RemoveAll(dir) })
	_, err = out.Read(make([]byte, 1)) // it prints the socket's name once it listens
	ts.Check(err)
	ts.Setenv("SSH_AUTH_SOCK", socket)
}

// extractProof writes the proof of a shown task to files: otheragent extract FILE.
func extractProof() {
	text, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	var shown struct {
		Approvals []struct {
			Proof struct{ Signature, Signed string }
		}
		Signed string // in a line of a bundle, which has its proof beside it
		Proof  struct{ Signature string }
	}
	if err := json.Unmarshal(text, &shown, json.MatchCaseInsensitiveNames(true)); err != nil {
		panic(err)
	}
	proof := struct{ Signature, Signed string }{shown.Proof.Signature, shown.Signed}
	if shown.Signed == "" {
		proof = shown.Approvals[0].Proof
	}
	if err := errors.Join(os.WriteFile("signature", []byte(proof.Signature), 0o600), os.WriteFile("signed", []byte(proof.Signed), 0o600)); err != nil {
		panic(err)
	}
}

// replay sends the extracted signature for another task: otheragent replay ID.
func replay() {
	signature, err := os.ReadFile("signature")
	if err != nil {
		panic(err)
	}
	signed, err := os.ReadFile("signed")
	if err != nil {
		panic(err)
	}
	_, expires, _ := strings.Cut(string(signed), "expires: ")
	body, err := json.Marshal(map[string]any{"proof": map[string]string{"expires_at": strings.TrimSpace(expires), "signature": string(signature)}})
	if err != nil {
		panic(err)
	}
	os.Args = []string{"agent", "call", "tasks/" + os.Args[2] + "/approve", string(body)}
	call()
}

// connect opens a connection to the control socket as an editor does, and keeps it: otheragent connect
// FILE ID. The file gets the number of the process, once it is open, and the id of a task.
func connect() {
	conn := dialControl()
	defer conn.Close()
	aside := os.Args[2] + ".tmp"
	if err := errors.Join(os.WriteFile(aside, fmt.Append(nil, os.Getpid(), " ", os.Args[3], "\n"), 0o600), os.Rename(aside, os.Args[2])); err != nil {
		panic(err)
	}
	select {}
}

func dialControl() net.Conn {
	sockets, err := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "mailboxd", "*.sock"))
	if err != nil || len(sockets) != 1 {
		panic(fmt.Sprint(sockets, err))
	}
	socket := client.SocketPath{Dir: filepath.Dir(sockets[0]), Name: filepath.Base(sockets[0])} // its path is too long to dial
	conn, err := socket.Dial(context.Background())
	if err != nil {
		panic(err)
	}
	return conn
}
