package release_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"mailboxd/internal/testtools/slowtest"
)

// files are those of a release, without its signature.
func files() []string {
	all := []string{"SHA256SUMS", "mailboxd.rb", "mailboxd_" + version + ".cdx.json", "mailboxd-hub_" + version + ".cdx.json",
		"mailboxd_" + version + "_source.tar.gz"}
	for arch, machine := range map[string]string{"amd64": "x86_64", "arm64": "aarch64"} {
		all = append(all, "mailboxd_"+version+"_linux_"+arch+".tar.gz", "mailboxd_"+version+"_"+arch+".deb",
			"mailboxd-"+version+"."+machine+".rpm", "mailboxd-"+version+"-"+machine+".pkg.tar.zst", "mailboxd-"+version+"-"+machine+".apk")
	}
	slices.Sort(all)
	return all
}

// arch is that of this machine, as Go calls it.
func arch(t *testing.T) string {
	t.Helper()
	var system unix.Utsname
	if err := unix.Uname(&system); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}
	name := names[unix.ByteSliceToString(system.Machine[:])]
	if name == "" {
		t.Skip("a release has programs for amd64 and arm64, and none for this machine")
	}
	return name
}

// TestAReleaseIsWholeAndTheSameOnceMore builds a release in two clones, once without the network, the
// variables and the caches of this user, and tries each file.
func TestAReleaseIsWholeAndTheSameOnceMore(t *testing.T) {
	slowtest.Require(t, "it builds a release for two architectures twice")
	a := withSection(t)
	a.env = append(a.env, "RELEASE_KEY="+newKey(t, a))
	a.must("go", "-C", "release", "mod", "download")
	if out := a.must("release/build", version); strings.Contains(out, "PRIVATE KEY") || strings.Contains(out, "not signed") {
		t.Errorf("release/build says:\n%s", out)
	}
	if got, want := list(t, a.dir+"/dist"), append(files(), "SHA256SUMS.sig"); !slices.Equal(got, sorted(want)) {
		t.Errorf("dist has %q; want %q", got, sorted(want))
	}
	if left := a.must("git", "status", "--porcelain"); left != "" {
		t.Errorf("the build changes the checkout:\n%s", left)
	}

	t.Run("the same once more", func(t *testing.T) { buildAgain(t, a.with(t)) })
	t.Run("tarball", func(t *testing.T) { holdTarball(t, a.with(t)) })
	t.Run("packages", func(t *testing.T) { holdPackages(t, a.with(t)) })
	t.Run("bill of materials", func(t *testing.T) { holdBill(t, a.with(t)) })
	t.Run("formula", func(t *testing.T) { holdFormula(t, a.with(t)) })
	t.Run("what a stranger types", func(t *testing.T) { typeInstallPage(t, a.with(t)) })
	t.Run("one changed byte", func(t *testing.T) { changeBytes(t, a.with(t)) })
}

// newKey makes a key, and the file allowed_signers of those who trust it.
func newKey(t *testing.T, c *checkout) (path string) {
	t.Helper()
	requireTool(t, "ssh-keygen")
	path = filepath.Join(t.TempDir(), "key")
	c.must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "release", "-f", path)
	public := strings.Fields(read(t, path+".pub"))
	line := fmt.Sprintf("release %s %s\n", public[0], public[1])
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "allowed_signers"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	c.signers = filepath.Join(filepath.Dir(path), "allowed_signers")
	return path
}

// buildAgain builds the same commit as a stranger with a filled cache of modules does.
func buildAgain(t *testing.T, a *checkout) {
	b := &checkout{t: t, dir: filepath.Join(t.TempDir(), "clone")}
	a.must("git", "clone", "-q", a.dir, b.dir)
	where := strings.Fields(a.must("go", "env", "GOMODCACHE", "GOCACHE"))
	b.must("env", "-i", "PATH="+os.Getenv("PATH"), "HOME="+t.TempDir(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOMODCACHE="+where[0],
		"GOCACHE="+where[1], "release/build", version)
	if got := list(t, b.dir+"/dist"); !slices.Equal(got, files()) {
		t.Errorf("the second dist has %q; want %q", got, files())
	}
	for _, name := range files() {
		if read(t, filepath.Join(a.dir, "dist", name)) != read(t, filepath.Join(b.dir, "dist", name)) {
			t.Errorf("%s is another file the second time", name)
		}
	}
	if out := b.must("release/verify", "--unsigned", "dist"); !strings.Contains(out, version+" is whole: mailboxd "+version+" ") {
		t.Errorf("release/verify --unsigned says %q", out)
	}
	if out, code := b.run("release/verify", "dist", a.signers); code != 1 || !strings.Contains(out, "SHA256SUMS.sig: is missing") {
		t.Errorf("release/verify ends with %d and says %q; want 1: it isn't signed", code, out)
	}
}

// holdTarball reads what is in the tarball of this machine, and runs its program.
func holdTarball(t *testing.T, a *checkout) {
	c := a.with(t, "LC_ALL=C")
	top := "mailboxd_" + version + "_linux_" + arch(t)
	for line := range strings.Lines(c.must("tar", "-tvf", "dist/"+top+".tar.gz")) {
		fields := strings.Fields(line)
		name := fields[5]
		isProgram := strings.TrimSuffix(name, "-hub") == top+"/bin/mailboxd"
		if mode := fields[0]; mode != "drwxr-xr-x" && mode != "-rw-r--r--" && !(mode == "-rwxr-xr-x" && isProgram) {
			t.Errorf("the tarball has %s with the mode %s", name, mode)
		}
		if !strings.HasPrefix(name, top+"/") || strings.Contains(name, "..") || fields[1] != "0/0" {
			t.Errorf("the tarball has %s of %s", name, fields[1])
		}
	}
	home := t.TempDir()
	c.must("tar", "-xzf", "dist/"+top+".tar.gz", "-C", home, "--strip-components=1")
	for _, name := range []string{
		"share/man/man1/mailboxd.1", "share/man/man1/mailboxd-send.1", "share/bash-completion/completions/mailboxd",
		"share/zsh/site-functions/_mailboxd", "share/fish/vendor_completions.d/mailboxd.fish", "share/doc/mailboxd/LICENSE",
		"share/doc/mailboxd/README.md", "share/doc/mailboxd/config.example.yaml", "lib/systemd/user/mailboxd.service",
	} {
		text := read(t, filepath.Join(home, name))
		blank := strings.HasSuffix(name, ".service") && strings.Contains(text, "@ENV")
		if text == "" || blank || strings.Contains(text, "/nonexistent") || strings.Contains(text, a.dir) {
			t.Errorf("%s is empty, or names a directory of the build, or has a blank", name)
		}
	}
	holdSize(t, c, filepath.Join(home, "bin/mailboxd"))
}

// holdSize compares the program with one of a plain build.
func holdSize(t *testing.T, c *checkout, program string) {
	plain := filepath.Join(t.TempDir(), "plain")
	c.must("env", "CGO_ENABLED=0", "go", "build", "-ldflags", "-s -w", "-o", plain, "./cmd/mailboxd")
	released, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	built, err := os.Stat(plain)
	if err != nil {
		t.Fatal(err)
	}
	if released.Size() > built.Size()*102/100 {
		t.Errorf("the program has %d bytes, and one of a plain build %d", released.Size(), built.Size())
	}
}

// holdPackages compares what the packages of this machine have, and runs the program of one.
func holdPackages(t *testing.T, a *checkout) {
	c := a.with(t, "LC_ALL=C")
	deb := "dist/mailboxd_" + version + "_" + arch(t) + ".deb"
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch(t)]
	requireTool(t, "dpkg-deb")
	var want []string // the files of the Debian package
	for line := range strings.Lines(c.must("dpkg-deb", "-c", deb)) {
		if fields := strings.Fields(line); fields[0][0] != 'd' {
			want = append(want, strings.TrimPrefix(fields[5], "."))
		}
	}
	for _, name := range []string{
		"/usr/bin/mailboxd", "/usr/bin/mailboxd-hub", "/usr/share/man/man1/mailboxd.1", "/usr/share/bash-completion/completions/mailboxd",
		"/usr/share/zsh/vendor-completions/_mailboxd", "/usr/share/fish/vendor_completions.d/mailboxd.fish",
		"/usr/share/doc/mailboxd/copyright",
	} {
		if !slices.Contains(want, name) {
			t.Errorf("%s has no %s", deb, name)
		}
	}
	about := c.must("dpkg-deb", "-I", deb)
	if !strings.Contains(about, "Recommends: bubblewrap, git") {
		t.Errorf("%s recommends something else:\n%s", deb, about)
	}
	if parts := c.must("sh", "-c", "dpkg-deb --ctrl-tarfile "+deb+" | tar -t"); strings.Join(strings.Fields(parts), " ") != "./control ./md5sums" {
		t.Errorf("%s has the control files %q; want no script", deb, parts)
	}
	root := t.TempDir()
	c.must("dpkg-deb", "-x", deb, root)
	program := filepath.Join(root, "usr/bin/mailboxd")
	if out := c.must(program, "version"); !strings.HasPrefix(out, "mailboxd "+version+" go") {
		t.Errorf("version prints %q", out)
	}
	c.must("env", "HOME="+t.TempDir(), program, "demo")

	want = slices.DeleteFunc(want, func(name string) bool { return strings.Contains(name, "/vendor-completions/") })
	for _, archive := range []string{"-" + version + "-" + machine + ".pkg.tar.zst", "-" + version + "-" + machine + ".apk"} {
		if strings.HasSuffix(archive, ".zst") {
			requireTool(t, "zstd")
		}
		listed := c.must("sh", "-c", "tar --warning=no-unknown-keyword -tf dist/mailboxd"+archive+" | grep -v '/$' | grep '^usr/' | sed s,^,/,")
		if got := strings.Fields(listed); !slices.Equal(sorted(got), sorted(want)) {
			t.Errorf("mailboxd%s has %q; want %q", archive, got, want)
		}
		about := c.must("sh", "-c", "tar --warning=no-unknown-keyword -tf dist/mailboxd"+archive+" | grep '^[.]'")
		if about = strings.ReplaceAll(about, ".MTREE\n", ""); about != ".PKGINFO\n" {
			t.Errorf("mailboxd%s has scripts: %s", archive, about)
		}
	}
	t.Run("rpm", func(t *testing.T) {
		requireTool(t, "rpm")
		name := "dist/mailboxd-" + version + "." + machine + ".rpm"
		got := strings.Fields(c.with(t).must("rpm", "-qpl", name))
		got = slices.DeleteFunc(got, func(path string) bool { return path == "/usr/share/doc/mailboxd" }) // a directory
		if !slices.Equal(sorted(got), sorted(want)) {
			t.Errorf("%s has %q; want %q", name, got, want)
		}
		if about := c.must("rpm", "-qp", "--scripts", "--triggers", name); about != "" {
			t.Errorf("%s has scripts:\n%s", name, about)
		}
	})
}

// holdBill compares the components with the modules of the programs.
func holdBill(t *testing.T, a *checkout) {
	holdBillOf(t, a, "mailboxd")
	holdBillOf(t, a, "mailboxd-hub")
}

// holdBillOf compares the bill of one program with its modules.
func holdBillOf(t *testing.T, a *checkout, program string) {
	var bill struct {
		Format     string `json:"bomFormat"`
		Components []struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"components"`
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(a.dir, "dist/"+program+"_"+version+".cdx.json"))), &bill); err != nil {
		t.Fatal(err)
	}
	if bill.Format != "CycloneDX" {
		t.Errorf("bomFormat is %q", bill.Format)
	}
	listed := map[string]bool{}
	for _, c := range bill.Components {
		listed[c.Name+" "+c.Version] = true
	}
	for _, arch := range []string{"amd64", "arm64"} {
		top := "mailboxd_" + version + "_linux_" + arch
		dir := t.TempDir()
		a.must("tar", "-xzf", "dist/"+top+".tar.gz", "-C", dir)
		modules := 0
		for line := range strings.Lines(a.must("go", "version", "-m", filepath.Join(dir, top, "bin", program))) {
			if fields := strings.Fields(line); fields[0] == "dep" {
				modules++
				if program == "mailboxd" && strings.Contains(fields[1], "nats-server") {
					t.Errorf("mailboxd has %s, which only mailboxd-hub may have", fields[1])
				}
				if !listed[fields[1]+" "+fields[2]] {
					t.Errorf("the bill has no %s %s, which is in the program for %s", fields[1], fields[2], arch)
				}
			}
		}
		if modules < 10 {
			t.Errorf("the program for %s has %d modules; want all of go.mod that it uses", arch, modules)
		}
	}
}

// holdFormula checks the syntax of the formula, and the sum that it names.
func holdFormula(t *testing.T, a *checkout) {
	source := "mailboxd_" + version + "_source.tar.gz"
	sum, _, _ := strings.Cut(a.must("sha256sum", "dist/"+source), " ")
	formula := read(t, filepath.Join(a.dir, "dist/mailboxd.rb"))
	url := strings.TrimSpace(read(t, "../../../release/url")) + "/" + version + "/" + source
	for _, line := range []string{`sha256 "` + sum + `"`, `url "` + url + `"`, `version "` + strings.TrimPrefix(version, "v") + `"`} {
		if !strings.Contains(formula, line) {
			t.Errorf("the formula has no %s:\n%s", line, formula)
		}
	}
	dir := t.TempDir()
	a.must("tar", "-xzf", "dist/"+source, "-C", dir)
	if _, err := os.Stat(filepath.Join(dir, "mailboxd_"+version, "cmd/mailboxd/main.go")); err != nil {
		t.Errorf("the source has no program: %v", err)
	}
	requireTool(t, "ruby")
	if out := a.must("ruby", "-c", "dist/mailboxd.rb"); out != "Syntax OK\n" {
		t.Errorf("ruby -c says %q", out)
	}
}

// changeBytes changes a byte of each file, one after the other.
func changeBytes(t *testing.T, a *checkout) {
	if out := a.must("release/verify", "dist", a.signers); !strings.Contains(out, "Good") || !strings.Contains(out, version+" is whole") {
		t.Errorf("release/verify says %q", out)
	}
	for _, name := range list(t, filepath.Join(a.dir, "dist")) {
		path := filepath.Join(a.dir, "dist", name)
		text := []byte(read(t, path))
		at := len(text) / 2
		text[at] ^= 1
		a.write("dist/"+name, string(text))
		out, code := a.run("release/verify", "dist", a.signers)
		if code != 1 || !strings.Contains(out, name) || strings.Contains(out, "is whole") {
			t.Errorf("with a changed byte in %s, release/verify ends with %d and says %q; want 1 and its name", name, code, out)
		}
		text[at] ^= 1
		a.write("dist/"+name, string(text))
	}
	a.write("dist/extra", "")
	if out, code := a.run("release/verify", "dist", a.signers); code != 1 || !strings.Contains(out, "extra: is no file of the release") {
		t.Errorf("with another file, release/verify ends with %d and says %q; want 1 and its name", code, out)
	}
	if err := os.Remove(filepath.Join(a.dir, "dist/extra")); err != nil {
		t.Fatal(err)
	}
}

func requireTool(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed, which reads or makes files of a release; .ci/run installs it", name)
	}
}

// list returns the names in a directory, sorted.
func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }
