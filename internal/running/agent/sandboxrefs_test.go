package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mailboxd/internal/decisions/task"
	"mailboxd/internal/sandboxing/sandbox"
)

func TestManyFilesOfATaskAreLinksInADirectoryOfTheRun(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	for _, dir := range []string{"run/work", "data/a/b", "data/project", "data/tools/1.0"} {
		if err := os.MkdirAll(at(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var refs []sandbox.Path
	for i := range mostRefs + 1 {
		dir := []string{"data/a", "data/a/b", "data/project"}[i%3]
		path := at(dir, fmt.Sprintf("%d.txt", i))
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		refs = append(refs, sandbox.Path{Name: path, Real: path})
	}
	r := sandbox.Run{
		Dir: at("run"), Work: at("run/work"), Home: base,
		Cwd:  sandbox.Path{Name: at("data/project"), Real: at("data/project")},
		Read: []sandbox.Path{{Name: at("data/bin/tool"), Real: at("data/tools/1.0")}},
	}
	if err := addManyRefs(task.Job{Dir: at("run")}, &r, refs, false); err != nil {
		t.Fatal(err)
	}
	want := sandbox.Path{Name: at("data"), Real: at("run/refs", base, "data")}
	if len(r.Refs) != 1 || r.Refs[0] != want {
		t.Errorf("the directories are %v; want %v", r.Refs, want)
	}
	for _, ref := range refs {
		inside, err := os.Stat(filepath.Join(at("run/refs"), ref.Real))
		outside, _ := os.Stat(ref.Real)
		if shown := filepath.Dir(ref.Real) == at("data/project"); shown != (err != nil) || err == nil && !os.SameFile(inside, outside) {
			t.Errorf("%s: %v; want a link, or nothing in the working directory", ref.Real, err)
		}
	}
	for _, point := range []string{"data/project", "data/tools/1.0"} {
		if info, err := os.Stat(filepath.Join(at("run/refs"), at(point))); err != nil || !info.IsDir() {
			t.Errorf("%s can't be mounted: %v", point, err)
		}
	}
	if to, err := os.Readlink(filepath.Join(at("run/refs"), at("data/bin/tool"))); to != at("data/tools/1.0") {
		t.Errorf("the link of the program is %q, %v", to, err)
	}
}

func TestAFileOfATaskThatBecameALinkIsNotLinked(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	if err := linkRef(link, filepath.Join(dir, "refs", "copy")); err == nil {
		t.Error("linkRef follows a symbolic link")
	}
}
