package sandbox

import (
	"slices"
	"strings"
)

// ToolsVariable is the variable of a run with the address of its tool broker.
const ToolsVariable = "MAILBOX_MCP_URL"

// ToolsTokenVariable is the variable of a run with the file of the token for that address.
const ToolsTokenVariable = "MAILBOX_MCP_TOKEN_FILE"

// ToolsReference stands for the address in the arguments of a run. They are made before the address is
// known: in a sandbox, it is that of a listener inside.
const ToolsReference = "${" + ToolsVariable + "}"

// AddTools returns arguments and an environment that have the address of the tool broker.
func AddTools(argv, env []string, url string) (withURL, withVariable []string) {
	argv = slices.Clone(argv)
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], ToolsReference, url)
	}
	return argv, append(slices.Clone(env), ToolsVariable+"="+url)
}
