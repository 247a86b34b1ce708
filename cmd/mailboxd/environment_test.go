package main

import (
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailboxd/internal/testtools/slowtest"
)

// cleanTests runs the tests in an environment of their own: what the person who
// runs them has configured or exported is theirs. A command that the test binary
// plays has the environment that its test gives it.
type cleanTests struct{ *testing.M }

func (c cleanTests) Run() int {
	home, err := os.MkdirTemp("", "mailboxd-home-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home)
	if err := cleanEnvironment(home); err != nil {
		panic(err)
	}
	remove, err := addPrograms()
	defer remove()
	if err != nil {
		panic(err)
	}
	time.Local = time.UTC // before any timer reads it
	slowtest.RunAtOnce(6) // scripts wait for daemons, deadlines and files more than they compute
	return c.M.Run()
}

// cleanEnvironment keeps what finds programs and what steers Go, and has home as
// the only other place.
func cleanEnvironment(home string) error {
	cache, err := goCache()
	if err != nil {
		return err
	}
	own := map[string]string{"HOME": home, "LANG": "C.UTF-8", "GOCACHE": cache, "GOPATH": build.Default.GOPATH}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if name == "PATH" || name == "TMPDIR" || name == slowtest.Variable || name == programsVariable || strings.HasPrefix(name, "GO") {
			own[name] = value
		}
	}
	os.Clearenv()
	for name, value := range own {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// goCache is where Go keeps what it has built.
func goCache() (string, error) {
	if dir := os.Getenv("GOCACHE"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "go-build"), err
}

// A developer of mailboxd may well be a user of it.
func TestNothingThatTheUserHasConfiguredReachesATest(t *testing.T) {
	slowtest.SkipShort(t, "it runs tests again in other environments")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, config := range map[string]string{
		"a broken configuration": "agents: [broken\n\t:::",
		"one with agents":        "root: OWN/box\nagents: [{id: worker, exec: {command: [sh, -c, 'exit 7']}}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			for file, text := range map[string]string{
				".config/mailboxd/config.yaml":            strings.ReplaceAll(config, "OWN", home),
				".local/state/mailboxd/box-01234567/root": filepath.Join(home, "box"),
			} {
				path := filepath.Join(home, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			// What they cover: scripts, an editor, a supervisor, and the configuration itself.
			cmd := exec.Command(self, "-test.run", "^(TestScripts|TestWithoutADaemonAnEditorSendsAndReads|TestARestartOfTheServiceDoesNotDisturbARunningAgent|TestFlagBeatsEnvironmentBeatsFileBeatsDefault)$/^(inbox|summary)$")
			cmd.Env = append(os.Environ(),
				"HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"), "XDG_STATE_HOME="+filepath.Join(home, ".local/state"),
				"XDG_RUNTIME_DIR="+home, "AINL_AGENT_ROOT="+filepath.Join(home, "box"),
				"MAILBOXD_ROOT="+filepath.Join(home, "box"), "MAILBOXD_LOG_LEVEL=nonsense", "MAILBOXD_LIMITS_CONCURRENCY=-1",
				"MAILBOX_TASK_FILE="+filepath.Join(home, "task.json"), "NOTIFY_SOCKET="+filepath.Join(home, "notify"), "WATCHDOG_USEC=1",
				"NO_COLOR=1", "TERM=dumb", "COLUMNS=20", "LC_ALL=de_DE.UTF-8", "TZ=Asia/Tokyo",
			)
			if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "no tests to run") {
				t.Errorf("the tests ran into it: %v\n%s", err, out)
			}
			if _, err := os.Stat(filepath.Join(home, "box")); err == nil {
				t.Error("a test has used the mailbox of the user")
			}
		})
	}
}
