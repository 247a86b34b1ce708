package api

import "mailboxd/dispatch"

// Changing lists the paths of all requests that change something.
func Changing() (paths []string) {
	d := &Server{engine: &dispatch.Dispatcher{}}
	for _, r := range d.routes() {
		if r.method != "GET" {
			paths = append(paths, r.path)
		}
	}
	return paths
}
