package mailboxd_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestABuildForAnotherSystemSaysThatMailboxdNeedsLinux builds for systems that mailboxd
// does not run on. Go stops before it compiles anything.
func TestABuildForAnotherSystemSaysThatMailboxdNeedsLinux(t *testing.T) {
	for _, system := range []string{"darwin", "windows"} {
		for _, verb := range []string{"build", "vet", "install"} {
			cmd := exec.Command("go", verb, "./cmd/mailboxd")
			cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "GOFLAGS=")
			out, err := cmd.CombinedOutput()
			said := withoutDownloads(string(out))
			if err == nil || !strings.HasSuffix(said, "mailboxd-needs-linux") || strings.Count(said, "\n") > 1 {
				t.Errorf("GOOS=%s go %s says %q, %v; want one error that ends with mailboxd-needs-linux", system, verb, said, err)
			}
		}
	}
}

// withoutDownloads removes what Go says about modules that its cache doesn't have yet.
func withoutDownloads(output string) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(output), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "go: downloading ")
	})
	return strings.Join(lines, "\n")
}
