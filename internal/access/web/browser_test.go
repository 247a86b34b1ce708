package web_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"golang.org/x/sys/unix"

	"mailboxd/envelope"
	"mailboxd/internal/cli/demo"
	"mailboxd/internal/cli/reader"
	"mailboxd/internal/decisions/task"
	"mailboxd/internal/testtools/programs"
	"mailboxd/internal/testtools/slowtest"
)

// program is mailboxd, built by TestMain.
var program string

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "fetch" {
		fetch(os.Args[2])
		return
	}
	os.Exit(func() int {
		built, remove, err := programs.Build("web-test-", "../../../cmd/mailboxd")
		if err != nil {
			panic(err)
		}
		defer remove()
		program = built
		defer stopBrowser()
		return m.Run()
	}())
}

// A world is a mailbox with a daemon, and the page of it at a terminal.
type world struct {
	t      testing.TB
	dir    string
	env    []string
	config string
	at     reader.Location

	daemon   *exec.Cmd
	person   *os.File // the person's end of the terminal of mailboxd web
	mu       sync.Mutex
	terminal strings.Builder // what was printed there
	links    chan string
	asked    chan string // questions of the daemon
}

// newWorld starts a daemon with the agents of the demo.
func newWorld(t testing.TB) *world {
	t.Helper()
	dir := t.TempDir()
	path, err := demo.Write(dir, program)
	if err != nil {
		t.Fatal(err)
	}
	withoutGrace(t, path)
	w := &world{
		t: t, dir: dir, config: path, links: make(chan string, 9), asked: make(chan string, 9),
		at:  reader.Location{Root: filepath.Join(dir, "mailbox"), StateDir: filepath.Join(dir, "state")},
		env: append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir),
	}
	w.serve()
	return w
}

// withoutGrace has the daemon stop its agents as soon as it ends.
func withoutGrace(t testing.TB, config string) {
	t.Helper()
	text, err := os.ReadFile(config)
	if err == nil && !bytes.Contains(text, []byte("shutdown_grace: 1s")) {
		err = errors.New("it has no shutdown_grace of 1s")
	}
	if err == nil {
		err = os.WriteFile(config, bytes.Replace(text, []byte("shutdown_grace: 1s"), []byte("shutdown_grace: 0s"), 1), 0o600)
	}
	if err != nil {
		t.Fatalf("change %s: %v", config, err)
	}
}

// serve starts the daemon.
func (w *world) serve() {
	w.t.Helper()
	cmd := exec.Command(program, "serve", "--config", w.config)
	log, err := os.OpenFile(filepath.Join(w.dir, "serve.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	defer log.Close()
	cmd.Env, cmd.Stderr = w.env, log
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.daemon = cmd
	w.t.Cleanup(func() { w.stop(cmd) })
	ctx, stop := context.WithTimeout(w.t.Context(), patience)
	defer stop()
	if err := w.at.AwaitDaemon(ctx); err != nil {
		w.t.Fatalf("the daemon does not serve: %v; its log:\n%s", err, w.log())
	}
}

// open starts mailboxd web at a terminal of its own, and returns its first link.
func (w *world) open() string {
	w.t.Helper()
	w.start("web", "--config", w.config)
	return w.link()
}

// start starts mailboxd at a terminal of its own.
func (w *world) start(args ...string) *exec.Cmd {
	w.t.Helper()
	person, terminal := openPty(w.t)
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = w.env, terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	_ = terminal.Close()
	w.person = person
	var reading sync.WaitGroup
	reading.Go(w.read)
	w.t.Cleanup(func() {
		w.stop(cmd)
		_ = person.Close()
		reading.Wait()
	})
	return cmd
}

// link returns the next link that the terminal shows.
func (w *world) link() string {
	w.t.Helper()
	select {
	case link := <-w.links:
		return link
	case <-time.After(patience):
		w.t.Fatalf("the terminal shows no link: %q", w.shown())
	}
	return ""
}

// question returns what is asked at the terminal.
func (w *world) question() string {
	w.t.Helper()
	select {
	case text := <-w.asked:
		return text
	case <-time.After(patience):
		w.t.Fatalf("nothing is asked at the terminal: %q", w.shown())
	}
	return ""
}

func (w *world) shown() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.terminal.String()
}

var linkPattern = regexp.MustCompile(`http://mbx-[a-z0-9-]+\.localhost:\d+/#\S+`)

// read reads the terminal until it is closed.
func (w *world) read() {
	text, lines := "", bufio.NewReader(w.person)
	for {
		b, err := lines.ReadByte()
		if err != nil {
			return
		}
		w.mu.Lock()
		w.terminal.WriteByte(b)
		w.mu.Unlock()
		text += string(b)
		asks := func(end string) bool { return strings.HasSuffix(text, end) }
		if slices.ContainsFunc([]string{"to confirm: ", "for this decision alone.", "and approves nothing."}, asks) {
			w.asked <- text
			text = ""
		} else if link := linkPattern.FindString(text); link != "" && b == '\n' {
			w.links <- link
			text = ""
		}
	}
}

// openPty returns both ends of a pseudo-terminal.
func openPty(t testing.TB) (person, terminal *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.SetNonblock(int(person.Fd()), true)
	return person, terminal
}

// browser opens a tab of a real browser, which has no cookies, storage or authenticators of other
// tests; a test without a browser is skipped.
func browser(t *testing.T) *tab {
	t.Helper()
	slowtest.SkipShort(t, "it starts a browser")
	path, why := canStart()
	if path == "" {
		t.Skip("no browser can be started, such as chromium: " + why)
	}
	shared, err := startBrowser()
	if err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	ctx, stop := chromedp.NewContext(shared, chromedp.WithNewBrowserContext())
	t.Cleanup(stop)
	ctx, stopTime := context.WithTimeout(ctx, 8*time.Minute)
	t.Cleanup(stopTime)
	return &tab{t, ctx}
}

// startBrowser starts the browser of all tests, which stopBrowser ends.
var startBrowser = sync.OnceValues(func() (context.Context, error) {
	home, err := os.MkdirTemp("", "web-browser-")
	if err != nil {
		return nil, err
	}
	path, _ := canStart()
	// The sandbox of the browser needs root or user namespaces, and the tests open their own pages alone.
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.Flag("disable-gpu", true), chromedp.NoSandbox, chromedp.Env("HOME="+home))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, stopTabs := chromedp.NewContext(ctx)
	stopBrowser = func() {
		stopTabs()
		stop()
		_ = os.RemoveAll(home) // a child of the browser may still write
	}
	late := time.AfterFunc(patience, stopTabs)
	defer late.Stop()
	return ctx, chromedp.Do(ctx)
})

// stopBrowser ends the browser, if there is one.
var stopBrowser = func() {}

// A tab is a tab of a browser.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// beside opens another tab of the same browser.
func (b *tab) beside() *tab {
	ctx, stop := chromedp.NewContext(b.ctx)
	b.t.Cleanup(stop)
	return &tab{b.t, ctx}
}

// do has the browser do something.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatalf("%v\nthe page shows:\n%s", err, b.text())
	}
}

// text is what the page shows.
func (b *tab) text() string {
	text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	return text
}

// eval evaluates an expression of JavaScript.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v\nthe page shows:\n%s", expression, err, b.text())
	}
	return value
}

// until waits until an expression is true on a page whose scripts have run, also on the next page.
func (b *tab) until(condition string) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, patience)
	defer stop()
	for ctx.Err() == nil {
		if ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.readyState === "complete" && (`+condition+`)`)); ok && err == nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	b.t.Fatalf("it never came that %s\nthe page shows:\n%s", condition, b.text())
}

// sees waits until the page shows texts.
func (b *tab) sees(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		b.until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
	}
}

// visit opens another page.
func (b *tab) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(eval[string](b, `location.origin`) + path))
}

// enter opens the page by its link.
func (b *tab) enter(link string) {
	b.t.Helper()
	b.do(chromedp.Navigate(link))
	b.until(`!!document.querySelector("#link")`)
}

// result waits for the result of a task.
func (w *world) result(id envelope.ID) []byte {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), patience)
	defer stop()
	raw, err := reader.AwaitResult(ctx, w.at, id)
	if err != nil {
		w.t.Fatalf("await %s: %v", id, err)
	}
	return raw
}

// state waits until a task is in a state.
func (w *world) state(id envelope.ID, want task.State) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.t.Context(), patience)
	defer stop()
	reached := false
	err := w.at.Watch(ctx, func(ctx context.Context, r *reader.Reader) error {
		row, err := r.Latest(ctx, id)
		if reached = err == nil && row.State == want; reached {
			stop()
		}
		return nil
	})
	if !reached {
		w.t.Fatalf("%s did not become %s: %v", id, want, err)
	}
}
