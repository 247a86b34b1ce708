package schema

import (
	"embed"
	"io/fs"
	"strings"
)

// AgentOutput is the schema of a status, a summary, and actions that each say what kind they
// are of, what was done, and how that ended. AINL names it and defines it nowhere (AINL-42).
const AgentOutput = "schema://ainl/agent-output/v1"

//go:embed agent-output-v1.json
var agentOutput []byte

//go:embed builtin
var builtinFiles embed.FS

// builtin has the texts of the schemas that are always there, by their refs: AgentOutput and
// those of Clutch's five payload types (CLUTCH-41).
var builtin = func() map[string][]byte {
	texts := map[string][]byte{AgentOutput: agentOutput}
	err := fs.WalkDir(builtinFiles, "builtin", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := builtinFiles.ReadFile(path)
		texts[scheme+strings.TrimSuffix(strings.TrimPrefix(path, "builtin/"), extension)] = text
		return err
	})
	if err != nil {
		panic(err) // the files are part of the program
	}
	return texts
}()
