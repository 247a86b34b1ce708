package release_test

import (
	"strings"
	"testing"

	"mailboxd/internal/testtools/slowtest"
)

const otherPath = "example.com/x/mailboxd"

func TestTheModuleIsThatOfTheFileThatNamesIt(t *testing.T) {
	path := strings.TrimSpace(read(t, "../../../release/module"))
	for file, want := range map[string]string{"../../../go.mod": path, "../../../release/go.mod": path + "/release"} {
		if first, _, _ := strings.Cut(read(t, file), "\n"); first != "module "+want {
			t.Errorf("%s begins with %q; want the module %s", file, first, want)
		}
	}
}

func TestARenamedTreeIsWhole(t *testing.T) {
	slowtest.SkipShort(t, "it renames a copy of the tree")
	t.Parallel()
	tree := copyOfTree(t)
	tree.must("release/rename", otherPath)
	if got := tree.must("go", "list", "-m"); got != otherPath+"\n" {
		t.Errorf("go list -m prints %q; want %s", got, otherPath)
	}
	if got := tree.must("cat", "release/module"); got != otherPath+"\n" {
		t.Errorf("release/module has %q; want %s", got, otherPath)
	}
	tree.must("go", "test", "-trimpath", "-run", "Imports|Impurities|Pure|Closure|Table", ".")
	tree.must("go", "-C", "release", "vet", "./...")
	if slowtest.Enabled() {
		tree.must("go", "build", "-trimpath", "./...") // -trimpath: the next copy finds these packages in the cache
		tree.must("go", "vet", "-trimpath", "./...")
	}
	tree.must("release/rename", strings.TrimSpace(read(t, "../../../release/module")))
	if changed := tree.must("git", "status", "--porcelain"); changed != "" {
		t.Errorf("renamed there and back, the tree has other files:\n%s", changed)
	}
}

func refusePaths(t *testing.T, tree *checkout) {
	for _, args := range [][]string{nil, {""}, {"nope..x/"}, {"a b"}, {"a", "b"}} {
		out, code := tree.run("release/rename", args...)
		if code != 2 || strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, "release/rename: ") {
			t.Errorf("release/rename %q ends with %d and says %q; want 2 and one line", args, code, out)
		}
	}
	if changed := tree.must("git", "status", "--porcelain"); changed != "" {
		t.Errorf("refused paths changed:\n%s", changed)
	}
}
