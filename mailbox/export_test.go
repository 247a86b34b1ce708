package mailbox

// The two ways to put a result, for tests on file systems that have both.
var (
	PutNameless = (*Box).putNameless
	PutNamed    = (*Box).putNamed
)
