//go:build !amd64

package sandbox

// The calls that only amd64 has.
var (
	oldModeCalls []modeCall
	oldOpenCalls []openCall
)
