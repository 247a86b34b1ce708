// Package exchange takes requests and messages in, from lines and from the runs of agents,
// and does what they ask. Nobody speaks as somebody else.
package exchange
