package service_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mailboxd/internal/operating/service"
)

// systemctl is a stand-in for the user's: systemctl and loginctl write down what
// they are asked for. Lingering is a file.
const systemctl = `#!/bin/sh
echo "systemctl $*" >> "$CALLS"
case "$*" in *ActiveState*) printf 'ActiveState=active\nUnitFileState=enabled\nMainPID=42\n' ;; esac
`

const loginctl = `#!/bin/sh
case "$1" in
show-user) [ -e "$CALLS.linger" ] && echo yes || echo no; exit ;;
enable-linger) : > "$CALLS.linger" ;;
disable-linger) rm "$CALLS.linger" ;;
esac
echo "loginctl $*" >> "$CALLS"
`

// system makes one, and returns where the calls are written down.
func system(t *testing.T) (calls string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"systemctl": systemctl, "loginctl": loginctl} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config"))
	calls = filepath.Join(dir, "calls")
	t.Setenv("CALLS", calls)
	return calls
}

// since returns what was called since the last time.
func since(t *testing.T, calls string) string {
	t.Helper()
	text, err := os.ReadFile(calls)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(calls, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	var changes []string
	for _, line := range lines {
		if !strings.Contains(line, " show ") {
			changes = append(changes, line)
		}
	}
	return strings.Join(changes, ", ")
}

var unit = service.Unit{Program: "/bin/true", Args: []string{"serve"}, Env: []string{"PATH=/a:/b"}, EnvFile: "/nowhere"}

func TestAnUninstallTakesBackWhatInstallDid(t *testing.T) {
	calls := system(t)
	if err := service.Install(t.Context(), unit, true); err != nil {
		t.Fatal(err)
	}
	if got, want := since(t, calls), "loginctl enable-linger, systemctl --user daemon-reload, systemctl --user enable mailboxd.service, systemctl --user restart mailboxd.service"; got != want {
		t.Errorf("install called %s; want %s", got, want)
	}
	if err := service.Install(t.Context(), unit, false); err != nil { // an upgrade does not forget
		t.Fatal(err)
	}
	since(t, calls)
	lingered, err := service.Uninstall(t.Context())
	if err != nil || !lingered {
		t.Errorf("Uninstall = %v, %v; want lingering taken back", lingered, err)
	}
	if got, want := since(t, calls), "systemctl --user disable --now mailboxd.service, systemctl --user daemon-reload, loginctl disable-linger"; got != want {
		t.Errorf("uninstall called %s; want %s", got, want)
	}
	if _, err := service.Installed(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Installed after Uninstall: %v; want nothing there", err)
	}
}

func TestLingeringThatWasThereBeforeStays(t *testing.T) {
	calls := system(t)
	if err := os.WriteFile(calls+".linger", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := service.Install(t.Context(), unit, true); err != nil {
		t.Fatal(err)
	}
	if lingered, err := service.Uninstall(t.Context()); err != nil || lingered {
		t.Errorf("Uninstall = %v, %v; want lingering left alone", lingered, err)
	}
	if !service.Lingers(t.Context()) {
		t.Error("lingering was disabled; somebody else had enabled it")
	}
}

func TestAUnitOfSomebodyElseIsLeftAlone(t *testing.T) {
	system(t)
	path, err := service.Path()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("[Service]\nExecStart=/mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := service.Install(t.Context(), unit, false); !errors.Is(err, service.ErrForeign) {
		t.Errorf("Install = %v; want ErrForeign", err)
	}
	if _, err := service.Uninstall(t.Context()); !errors.Is(err, service.ErrForeign) {
		t.Errorf("Uninstall = %v; want ErrForeign", err)
	}
	if text, _ := service.Installed(); !strings.Contains(text, "/mine") {
		t.Errorf("the unit is now %q; want it untouched", text)
	}
}

func TestWithoutSystemdNothingIsWritten(t *testing.T) {
	system(t)
	t.Setenv("PATH", t.TempDir())
	if err := service.Install(t.Context(), unit, true); !errors.Is(err, service.ErrNoManager) {
		t.Errorf("Install = %v; want ErrNoManager", err)
	}
	if _, err := service.Installed(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Installed: %v; want nothing there", err)
	}
}

func TestTheServiceIsAskedHowItStands(t *testing.T) {
	system(t)
	got, err := service.Ask(t.Context())
	if want := (service.Status{Active: "active", Enabled: true, PID: "42"}); err != nil || got != want {
		t.Errorf("Ask = %+v, %v; want %+v", got, err, want)
	}
}

func TestThePathIsReadBackAsItWasWritten(t *testing.T) {
	for _, path := range []string{"/a:/b", `/with space:/100%:/back\slash:/quo"te:/$HOME/x`, `/ends in \`} {
		text, err := service.Unit{Program: "/bin/true", Env: []string{"PATH=" + path}}.Text()
		if got := service.PathOf(text); err != nil || got != path {
			t.Errorf("PathOf(%q) = %q, %v; want it back", path, got, err)
		}
	}
}

func TestAUnitThatSystemdWouldMisreadIsNotWritten(t *testing.T) {
	for _, u := range []service.Unit{
		{Program: "/bin/true", Args: []string{"a\nExecStart=/evil"}},
		{Program: "/bin/true", Env: []string{"A=b\nc"}},
		{Program: `/bin/tr"ue`},
	} {
		if text, err := u.Text(); err == nil {
			t.Errorf("Text of %+v = %s; want an error", u, text)
		}
	}
}

func TestSystemdAcceptsTheUnitWhateverThePathsAreCalled(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here")
	}
	dir := t.TempDir()
	odd, program := filepath.Join(dir, `o dd$HOME 100%d"q\`), filepath.Join(dir, "o dd$HOME 100%d")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	u := service.Unit{Program: program, Args: []string{"serve", "--config", odd}, Env: []string{"PATH=" + dir, "X=$a %d"}, EnvFile: odd + "/environment"}
	text, err := u.Text()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, service.Name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(analyze, "verify", "--user", file)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_RUNTIME_DIR=" + dir} // what it says is compared: in English
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "\n") != strings.Count(string(out), "Unknown key 'DelegateSubgroup'") { // before systemd 254
		t.Errorf("systemd-analyze verify: %v\n%s\n%s", err, out, text)
	}
}

func TestTheLoginPathIsTheProfilesAndNotOurs(t *testing.T) {
	home := t.TempDir()
	profile := "echo welcome\nPATH=/from/profile:$PATH\nexport PATH\n"
	if err := os.WriteFile(filepath.Join(home, ".profile"), []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("SHELL", "/bin/sh")
	t.Setenv("PATH", "/inherited:"+os.Getenv("PATH"))
	path, err := service.LoginPath(context.Background())
	if err != nil || !strings.HasPrefix(path, "/from/profile:") || strings.Contains(path, "/inherited") {
		t.Errorf("LoginPath = %q, %v; want what the profile says, and nothing of ours", path, err)
	}
}
