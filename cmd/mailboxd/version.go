package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/spf13/cobra"

	"mailboxd/envelope"
	"mailboxd/envelope/dialect"
	"mailboxd/internal/access/mcpserver"
	"mailboxd/internal/cli/term"
	"mailboxd/internal/running/acp"
	"mailboxd/internal/stores/ledger"
)

// release is set by the linker for a released binary.
var release = ""

// version names this build: the release, else the module's version or commit.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// versionLine names this build with its Go version and its system.
func versionLine() string {
	return fmt.Sprintf("mailboxd %s %s %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// A versionRecord is what version --json prints. docs/versions.md describes it.
type versionRecord struct {
	Version   string `json:"version"`
	Go        string `json:"go"`
	OS        string `json:"os"`
	Arch      string `json:"arch"`
	Protocols struct {
		AINL   string `json:"ainl"`
		CLowl  string `json:"clowl"`
		CAP    string `json:"cap"`
		Clutch string `json:"clutch"`
		ACP    string `json:"acp"`
		MCP    string `json:"mcp"`
	} `json:"protocols"`
	Schema int `json:"ledger_schema"`
}

func newVersionRecord() versionRecord {
	r := versionRecord{Version: version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Schema: ledger.SchemaVersion}
	dialects := dialect.Versions()
	r.Protocols.AINL, r.Protocols.CLowl = dialects[envelope.AINL], dialects[envelope.CLowl]
	r.Protocols.CAP, r.Protocols.Clutch = dialects[envelope.CAP], dialects[envelope.Clutch]
	r.Protocols.ACP, r.Protocols.MCP = strconv.Itoa(acp.ProtocolVersion), mcpserver.ProtocolVersion()
	return r
}

func versionCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Print the release or commit, the Go version and the system, as mailboxd --version
does. With --json, also the versions of the protocols and of the ledger's schema.`,
		Example: "  mailboxd version\n  mailboxd version --json | jq .ledger_schema",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return term.PrintJSON(cmd.OutOrStdout(), newVersionRecord())
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
