// Package mailbox is the shared directory for incoming tasks and outgoing results. It reads
// only whole lines. A file that it puts is either complete or missing. No name in the
// mailbox can lead outside the directory.
package mailbox
