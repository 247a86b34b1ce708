// Package mailbox is the shared directory where tasks come in and results go
// out. It reads only whole lines, and a file it puts is either complete or not
// there at all; nothing in it can lead a path outside the directory.
package mailbox
