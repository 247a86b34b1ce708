package runner_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"mailboxd/internal/running/runner"
)

func init() {
	roles["judges"] = judge
	roles["sheds its mark"] = func() {
		free := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
		if err := unix.Prlimit(0, unix.RLIMIT_RTTIME, &free, nil); err != nil {
			panic(err)
		}
		branch("double fork")
		ready()
		forever()
	}
	roles["brands itself"] = func() {
		runner.MarkSelf()
		branch("double fork")
		ready()
		forever()
	}
}

// judge plays the daemon: it says of each process that it is asked for why it
// is part of a run.
func judge() {
	k, err := runner.OpenKeepers(os.Args[1], "newer", []string{"keeper", "keeper"})
	if err != nil {
		panic(err)
	}
	defer k.Close()
	for _, pid := range os.Args[2:] {
		n, _ := strconv.Atoi(pid)
		if n == 0 {
			child := exec.Command("sleep", "1000")
			child.Env = []string{}
			if err := child.Start(); err != nil {
				panic(err)
			}
			defer child.Process.Kill()
			n = child.Process.Pid
		}
		why, err := k.PartOfRun(n)
		fmt.Printf("%s|%v\n", why, err)
		if os.Getenv("OWN") != "" {
			why, err := k.PartOfOwnRun(n)
			fmt.Printf("%s|%v\n", why, err)
		}
	}
}

// judged returns what a daemon of another build than the keeper's says of
// processes; 0 is a child of its own.
func judged(t *testing.T, dir string, pids ...int) []string {
	t.Helper()
	return judgedWith(t, nil, dir, pids...)
}

func judgedWith(t *testing.T, env []string, dir string, pids ...int) []string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{dir}, words(pids)...)...)
	cmd.Env = append(env, role+"=judges", "GORACE=atexit_sleep_ms=0", "PATH="+os.Getenv("PATH"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("judge: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

func words(pids []int) (all []string) {
	for _, pid := range pids {
		all = append(all, strconv.Itoa(pid))
	}
	return all
}

// bystander starts a process that is part of nothing, but for its environment.
func bystander(t *testing.T, env ...string) int {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Env = append([]string{"HOME=/"}, env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd.Process.Pid
}

func TestWhoBelongsToARunIsKnownByWhatItCannotShed(t *testing.T) {
	dir := t.TempDir()
	k := keepers(t, dir, "a")
	tree, shed := playing(t, "grows a tree and stays"), playing(t, "sheds its mark")
	first, second := detached(t, k, tree), detached(t, k, shed)
	var pids []int
	var want []string
	expect := func(pid int, why string) { pids, want = append(pids, pid), append(want, why+"|<nil>") }
	for _, link := range inside(t, tree.Dir) {
		expect(pidOf(link), "it has the mark of a run")
	}
	if len(pids) != 4 {
		t.Fatalf("the tree has %d processes; want 4", len(pids))
	}
	for _, link := range inside(t, shed.Dir) {
		if pid := pidOf(link); pid != second.PID { // an orphan with neither mark nor environment
			expect(pid, "it descends from a keeper")
		}
	}
	expect(second.PID, "it has MAILBOX_RUN_DIR in its environment")
	expect(bystander(t, "MAILBOX_RUN_ID=x"), "it has MAILBOX_RUN_ID in its environment")
	expect(bystander(t), "")
	expect(0, "it descends from the daemon")
	keeper := keeperOf(t, first)
	expect(keeper, "it descends from a keeper")
	compare(t, judged(t, dir, pids...), want)

	unix.Kill(keeper, unix.SIGKILL) // its orphans are somebody else's then
	compare(t, judged(t, dir, pids[:4]...), want[:4])
	for _, pid := range pids[:6] {
		unix.Kill(pid, unix.SIGKILL)
	}
}

func TestARunOfAnotherKeepersDirectoryIsNoOwnRun(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	k := keepers(t, dir, "a")
	tree := playing(t, "grows a tree and stays")
	detached(t, k, tree)
	var pids []int
	var here, there []string
	for _, link := range inside(t, tree.Dir) {
		pids = append(pids, pidOf(link))
		here = append(here, "it has the mark of a run|<nil>", "it has the mark of a run|<nil>")
		there = append(there, "it has the mark of a run|<nil>", "|<nil>")
	}
	pids = append(pids, bystander(t, "MAILBOX_RUN_ID=x"), bystander(t))
	for _, want := range []*[]string{&here, &there} {
		const env = "it has MAILBOX_RUN_ID in its environment|<nil>"
		*want = append(*want, env, env, "|<nil>", "|<nil>")
	}
	compare(t, judgedWith(t, []string{"OWN=1"}, elsewhere, pids...), there)
	compare(t, judgedWith(t, []string{"OWN=1"}, dir, pids...), here)
	for _, pid := range pids[:len(pids)-2] {
		unix.Kill(pid, unix.SIGKILL)
	}
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %q; want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("process %d: got %q; want %q", i, got[i], want[i])
		}
	}
}

func TestWhatADaemonStartsIsBranded(t *testing.T) {
	s := playing(t, "brands itself")
	cmd := exec.Command(s.Argv[0])
	cmd.Env, cmd.Dir = s.Env, s.Dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait(filepath.Join(s.Dir, "ready"))
	cmd.Process.Kill()
	cmd.Wait()
	left := inside(t, s.Dir) // an orphan of an orphan, without environment
	if len(left) != 1 {
		t.Fatalf("left over: %v; want one process", left)
	}
	defer unix.Kill(pidOf(left[0]), unix.SIGKILL)
	compare(t, judged(t, t.TempDir(), pidOf(left[0])), []string{"it has the mark of a run|<nil>"})
}

func TestWhoIsGoneIsNotToldFromAnAgent(t *testing.T) {
	k := keepers(t, t.TempDir(), "a")
	for _, pid := range []int{0, -1, 1 << 22} {
		if why, err := k.PartOfRun(pid); err == nil {
			t.Errorf("RunOf(%d) = %q, nil; want an error", pid, why)
		}
	}
	if why, err := k.PartOfRun(os.Getpid()); why != "" || err != nil {
		t.Errorf("RunOf(own process) = %q, %v; want nothing", why, err)
	}
}
