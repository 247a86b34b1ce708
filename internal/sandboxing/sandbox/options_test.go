package sandbox_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"mailboxd/internal/sandboxing/sandbox"
)

func same(path string) sandbox.Path { return sandbox.Path{Name: path, Real: path} }

// run is a run with a project, a ref, and a program behind a link.
func run() sandbox.Run {
	return sandbox.Run{
		Dir: "/state/runs/1", Work: "/state/runs/1/work", Home: "/home/u",
		Cwd:    same("/home/u/app"),
		Read:   []sandbox.Path{same("/box/refs/a.txt"), {Name: "/home/u/bin/agent", Real: "/opt/agent/1.2/agent"}},
		Write:  []sandbox.Path{same("/home/u/.agent/login.json")},
		Logins: []string{"/home/u/.agent/login.json"},
		System: []sandbox.Path{same("/usr"), {Name: "/bin", Real: "usr/bin"}},
		Masked: sandbox.Masked{Files: []string{"/etc/shadow"}, Dirs: []string{"/etc/ssl/private"}},
		Kernel: []string{"/proc/sys"},
		Fixed:  []string{"/home/u/app/.git/config"},
	}
}

func TestOptionsOfEachProfile(t *testing.T) {
	for _, test := range []struct {
		profile        sandbox.Profile
		wanted, absent []string
	}{
		{sandbox.Workspace, []string{
			"--unshare-net", "--cap-drop ALL", "--ro-bind /usr /usr", "--symlink usr/bin /bin", "--ro-bind /dev/null /etc/shadow --tmpfs /etc/ssl/private",
			"--proc /run/proc --proc /proc --ro-bind-try /proc/sys /proc/sys --tmpfs /proc/1 --remount-ro /proc/1 ", "--tmpfs /tmp --tmpfs /run",
			"--tmpfs /home/u", "--ro-bind-fd /state/runs/1 /state/runs/1 --bind-fd /state/runs/1/work /state/runs/1/work",
			"--bind-fd /home/u/app /home/u/app --ro-bind-fd /home/u/app/.git/config /home/u/app/.git/config",
			"--bind-fd /home/u/.agent/login.json", "--ro-bind-fd /box/refs/a.txt",
			"--ro-bind-fd /opt/agent/1.2/agent", "--symlink /opt/agent/1.2/agent /home/u/bin/agent",
			"--remount-ro /etc/ssl/private --remount-ro / --setenv TMPDIR /tmp --chdir /home/u/app",
		}, []string{"--uid", "--new-session", "--die-with-parent", "--share-net"}},
		{sandbox.Offline, []string{"--unshare-net", "--bind-fd /home/u/app /home/u/app"}, nil},
		{sandbox.ReadOnly, []string{"--ro-bind-fd /home/u/app /home/u/app", "--bind-fd /state/runs/1/work", " --bind-fd /home/u/.agent/login.json"}, []string{" --bind-fd /home/u/app"}},
	} {
		options := strings.Join(sandbox.Settings{Profile: test.profile}.Options(run()), " ")
		for _, part := range test.wanted {
			if !strings.Contains(options, part) {
				t.Errorf("%s: the options lack %q: %s", test.profile, part, options)
			}
		}
		for _, part := range test.absent {
			if strings.Contains(options, part) {
				t.Errorf("%s: the options have %q", test.profile, part)
			}
		}
	}
}

func TestRootIsNotRootInside(t *testing.T) {
	r := run()
	r.Root = true
	options := strings.Join(sandbox.Settings{Profile: sandbox.Workspace}.Options(r), " ")
	if !strings.Contains(options, "--uid 1000 --gid 1000") {
		t.Errorf("root stays root: %s", options)
	}
	if strings.Contains(options, "--proc /run/proc") {
		t.Errorf("root can have a /proc of its own, with settings of the kernel: %s", options)
	}
}

func TestTheTaskFileOfARunAppearsInTheMailbox(t *testing.T) {
	r := run()
	r.Tasks = sandbox.Path{Name: "/home/u/box/tasks/1.jsonl", Real: "/state/sandboxes/tasks/1"}
	settings := sandbox.Settings{Profile: sandbox.ReadOnly, Tasks: true}
	if options := strings.Join(settings.Options(r), " "); !strings.Contains(options, "--bind-fd /state/sandboxes/tasks/1 /home/u/box/tasks/1.jsonl") {
		t.Errorf("the options lack the task file: %s", options)
	}
}

func TestTheWorkDirectoryIsTheDefaultCwd(t *testing.T) {
	r := run()
	r.Cwd = sandbox.Path{}
	options := sandbox.Settings{Profile: sandbox.ReadOnly}.Options(r)
	if at := slices.Index(options, "--chdir"); options[at+1] != r.Work {
		t.Errorf("the working directory is %s; want %s", options[at+1], r.Work)
	}
}

func TestALinkInsideAMountIsTheMountsOwn(t *testing.T) {
	r := run()
	r.Read = append(r.Read, sandbox.Path{Name: "/home/u/app/run", Real: "/usr/local/bin/run"})
	options := strings.Join(sandbox.Settings{Profile: sandbox.Workspace}.Options(r), " ")
	if strings.Contains(options, "/home/u/app/run") {
		t.Errorf("a link would be made in the project: %s", options)
	}
}

func TestResolveOpensEveryPath(t *testing.T) {
	options := sandbox.Settings{Profile: sandbox.Workspace}.Options(run())
	var opened []string
	open := func(path string) (string, error) {
		opened = append(opened, path)
		return "7", nil
	}
	args, err := sandbox.Resolve(options, false, open)
	if text := strings.Join(args, " "); err != nil || !strings.Contains(text, "--bind-fd 7 /home/u/app") {
		t.Errorf("Resolve = %s, %v", text, err)
	}
	if want := []string{
		"/box/refs/a.txt", "/home/u/.agent/login.json", "/home/u/app", "/home/u/app/.git/config",
		"/opt/agent/1.2/agent", "/state/runs/1", "/state/runs/1/work",
	}; !slices.Equal(opened, want) {
		t.Errorf("Resolve opened %q; want %q", opened, want)
	}
	args, err = sandbox.Resolve(options, true, open)
	if text := strings.Join(args, " "); err != nil || !strings.Contains(text, "--bind /home/u/app /home/u/app") || strings.Contains(text, "bind-fd") {
		t.Errorf("Resolve by name = %s, %v", text, err)
	}
	bad := errors.New("no")
	if _, err := sandbox.Resolve(options, false, func(string) (string, error) { return "", bad }); err != bad {
		t.Errorf("Resolve = %v; want the error of open", err)
	}
}

func TestResolveLeavesAnOptionWithoutItsPathsAlone(t *testing.T) {
	cut := []string{"--chdir", "/", "--bind-fd", "/home/u/app"}
	args, err := sandbox.Resolve(cut, false, func(string) (string, error) { return "7", nil })
	if err != nil || !slices.Equal(args, cut) {
		t.Errorf("Resolve = %q, %v; want %q", args, err, cut)
	}
}

func TestTheWeakerSandboxGetsTheTaskFileAndTheWorkingDirectory(t *testing.T) {
	with := run()
	with.Tasks = sandbox.Path{Name: "/home/u/box/tasks/1.jsonl", Real: "/state/sandboxes/tasks/1"}
	without := run()
	without.Cwd = sandbox.Path{}
	for _, test := range []struct {
		name string
		run  sandbox.Run
		ends []string
	}{
		{"a run with a task file and a working directory", with, []string{
			"--bind-fd", "/state/sandboxes/tasks/1", "/state/sandboxes/tasks/1",
			sandbox.TempOption, with.Work, sandbox.ChdirOption, "/home/u/app",
		}},
		{"a run with neither", without, []string{
			"--bind-fd", without.Work, without.Work,
			sandbox.TempOption, without.Work, sandbox.ChdirOption, without.Work,
		}},
	} {
		options := sandbox.Settings{Profile: sandbox.Workspace}.WeakerOptions(test.run)
		if got := options[len(options)-len(test.ends):]; !slices.Equal(got, test.ends) {
			t.Errorf("the options of %s end with %q; want %q", test.name, got, test.ends)
		}
	}
}

func TestOnlyAnExitCodeShowsThatTheCommandRan(t *testing.T) {
	for text, want := range map[string]sandbox.Status{
		"":                                   {},
		"{ \"child-pid\": 12 }\n":            {Init: 12},
		"{ \"child-pid\": 12 }\n{ \"exit-co": {Init: 12},
		"{ \"child-pid\": 12 }\n{\"exit-code\":0}\n": {Init: 12, Began: true},
	} {
		if got := sandbox.ReadStatus([]byte(text)); got != want {
			t.Errorf("ReadStatus(%q) = %+v; want %+v", text, got, want)
		}
	}
}

func TestTheFilterIsAProgramForTheKernel(t *testing.T) {
	code, err := sandbox.Filter(false)
	if err != nil {
		t.Skip(err)
	}
	if len(code) == 0 || len(code)%8 != 0 {
		t.Errorf("the filter has %d bytes; want instructions of 8", len(code))
	}
	again, _ := sandbox.Filter(false)
	if !slices.Equal(code, again) {
		t.Error("two filters differ")
	}
}

func TestWithin(t *testing.T) {
	for _, test := range []struct {
		dir, path string
		want      bool
	}{{"/a", "/a", true}, {"/a", "/a/b", true}, {"/a", "/ab", false}, {"/", "/a", true}, {"/a/b", "/a", false}} {
		if got := sandbox.Within(test.dir, test.path); got != test.want {
			t.Errorf("Within(%s, %s) = %v", test.dir, test.path, got)
		}
	}
}

func TestARunMountsItsDirectoriesAndNoEmptyPath(t *testing.T) {
	r := sandbox.Run{Dir: "/r", Work: "/w", Home: "/h", Cwd: sandbox.Path{Name: "/c", Real: "/c"}}
	for name, c := range map[string]struct {
		run         sandbox.Run
		paths, made string
		have        bool
	}{
		"with a directory and a home": {r, "/c", "/h", true},
		"without them":                {sandbox.Run{Dir: "/r", Work: "/w"}, "", "", false},
	} {
		isPath := slices.ContainsFunc(c.run.Paths(), func(p sandbox.Path) bool { return p.Real == c.paths })
		if isMade := slices.Contains(c.run.Empty(), c.made); isPath != c.have || isMade != c.have {
			t.Errorf("%s: mounts %q: %t, makes %q: %t; want both %t", name, c.paths, isPath, c.made, isMade, c.have)
		}
	}
}
