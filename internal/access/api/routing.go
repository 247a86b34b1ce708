package api

import (
	"net/http"
	"strings"

	"mailboxd/internal/access/client"
)

// routing are the routes that explain the choice of agents. They change nothing.
func (d *Server) routing() []route {
	return []route{
		{"POST", "/route", "Which agent would get a task line now, as the data of the event routing.decided. Changes nothing.", "", client.RouteQuery{}, nil, d.routeLine},
		{"GET", "/cards", "The agents, with what they can do and whether they can do it now.", "", nil, client.Cards{}, d.cards},
		{"GET", "/tasks/{id}/route", "The same for a task that waits for the choice of its agent.", "", nil, nil, d.routeTask},
	}
}

func (d *Server) routeLine(r *http.Request) (any, error) {
	var q client.RouteQuery
	if err := read(r, &q); err != nil {
		return nil, err
	}
	text, err := d.engine.RouteLine(r.Context(), []byte(strings.TrimSpace(q.Line)))
	return []byte(text), err
}

func (d *Server) cards(r *http.Request) (any, error) {
	answer := client.Cards{Cards: []client.Card{}}
	if d.opts.Cards == nil {
		return answer, nil
	}
	health, err := d.engine.Health(r.Context())
	if err != nil {
		return nil, err
	}
	for _, card := range d.opts.Cards() {
		h := health[card.Agent]
		card.Status, card.Why, card.Running, card.Announced = h.Status, h.Why, h.Running, h.Announced
		answer.Cards = append(answer.Cards, card)
	}
	return answer, nil
}

func (d *Server) routeTask(r *http.Request) (any, error) {
	id, err := idIn(r)
	if err != nil {
		return nil, err
	}
	text, err := d.engine.RouteTask(r.Context(), id)
	return []byte(text), err
}
