// Package exchange processes requests and messages, from lines and from the runs of agents. No
// sender can act in the name of another one.
package exchange
