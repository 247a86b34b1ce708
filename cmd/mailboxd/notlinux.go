//go:build !linux

package main

import _ "mailboxd/internal/mailboxd-needs-linux" // ends a build for another system with one clear line
