package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
)

//go:embed helpers
var helpers embed.FS

// tools are the programs for the measures.
type tools struct {
	mailboxd string
	hub      string // "": not built yet
	static   string // does nothing, without a dynamic linker
	stamp    string // prints its start time, in ns of the system's clock
	compiler string // of static and stamp
	dir      string // the directory of the helpers
}

// compilers are tried in this order. The first ones make the fastest starts.
var compilers = [][]string{
	{"musl-gcc", "-static", "-Os", "-s"},
	{"gcc", "-static", "-Os", "-s"},
}

// build makes the programs in a new directory.
func build(ctx context.Context, dir string) (t tools, err error) {
	if err := os.CopyFS(dir, helpers); err != nil {
		return t, err
	}
	t = tools{mailboxd: filepath.Join(dir, "mailboxd"), dir: filepath.Join(dir, "helpers")}
	t.static, t.stamp = filepath.Join(t.dir, "true"), filepath.Join(t.dir, "stamp")
	if err := buildCommand(ctx, t.mailboxd); err != nil {
		return t, err
	}
	for _, c := range compilers {
		if _, err := exec.LookPath(c[0]); err != nil {
			continue
		}
		t.compiler = c[0]
		for _, program := range []string{t.static, t.stamp} {
			if err := run(ctx, c[0], append(c[1:], "-o", program, program+".c")...); err != nil {
				return t, err
			}
		}
		return t, nil
	}
	return t, t.buildInGo(ctx)
}

// buildCommand builds a command of the module, whose name is that of the file.
func buildCommand(ctx context.Context, file string) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("find the module of mailboxd: this program has no build information")
	}
	return run(ctx, "go", "build", "-o", file, info.Main.Path+"/cmd/"+filepath.Base(file))
}

// buildHub builds mailboxd-hub, unless it is built. Most measures don't need it.
func (t *tools) buildHub(ctx context.Context) error {
	if t.hub != "" {
		return nil
	}
	t.hub = filepath.Join(filepath.Dir(t.mailboxd), "mailboxd-hub")
	return buildCommand(ctx, t.hub)
}

// buildInGo builds the same programs without a C compiler. They start a third as fast.
func (t *tools) buildInGo(ctx context.Context) error {
	t.compiler = "go"
	for _, program := range []string{t.static, t.stamp} {
		source := program + "_.go"
		if err := os.Rename(program+".go.txt", source); err != nil {
			return err
		}
		if err := run(ctx, "env", "CGO_ENABLED=0", "go", "build", "-ldflags=-s -w", "-o", program, source); err != nil {
			return err
		}
	}
	return nil
}

// run runs a program. The error has its output.
func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// missing returns the first program that is not installed; "" if all are.
func missing(programs ...string) string {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return p
		}
	}
	return ""
}
