package release_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// typeInstallPage types the commands of docs/install.md that verify a download, in a directory with the
// files of the release, and the key of this release in place of the owner's.
func typeInstallPage(t *testing.T, a *checkout) {
	requireTool(t, "ssh-keygen")
	page := read(t, "../../../docs/install.md")
	dir := t.TempDir()
	here := &checkout{t: t, dir: dir, env: a.env}
	for _, name := range []string{"SHA256SUMS", "SHA256SUMS.sig", "mailboxd_" + version + "_amd64.deb"} {
		here.must("cp", filepath.Join(a.dir, "dist", name), dir)
	}
	typed := 0
	for line := range strings.Lines(page) {
		text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ ")
		if !ok || !strings.HasPrefix(text, "echo 'release ") && !strings.HasPrefix(text, "ssh-keygen -Y verify ") {
			continue
		}
		typed++
		if strings.HasPrefix(text, "echo ") {
			key := strings.Join(strings.Fields(read(t, a.signers))[1:], " ")
			before, after, _ := strings.Cut(text, "KEY")
			text = before + strings.TrimPrefix(key, "ssh-ed25519 ") + after
		}
		out := here.must("sh", "-c", strings.ReplaceAll(text, "v0.3.0", version))
		if want := `Good "mailboxd-release" signature for release`; strings.HasPrefix(text, "ssh-keygen") && !strings.Contains(out, want) {
			t.Errorf("$ %s\nprints %q; want %s", text, out, want)
		}
		if want := "mailboxd_" + version + "_amd64.deb: OK"; strings.Contains(text, "sha256sum") && !strings.Contains(out, want) {
			t.Errorf("$ %s\nprints %q; want %s", text, out, want)
		}
	}
	if typed != 2 {
		t.Errorf("docs/install.md has %d commands that verify a download; want the line of allowed_signers and the check", typed)
	}
}
