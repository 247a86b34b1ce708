package web

// A chart is a row of bars in an SVG picture. The server computes every number, since the policy
// of the page allows no style in the markup.
type chart struct {
	Width, Height int
	Bars          []rect
	Most          float64 // the value of the highest bar
}

// A bar is a value of a chart, in two parts, one on the other.
type bar struct {
	Label     string
	Good, Bad float64
}

// A rect is a part of a bar.
type rect struct {
	Label               string
	Class               string
	X, Y, Width, Height float64
}

// newChart draws bars into a picture of a size.
func newChart(bars []bar, width, height int) chart {
	c := chart{Width: width, Height: height}
	for _, b := range bars {
		c.Most = max(c.Most, b.Good+b.Bad)
	}
	step := float64(width) / float64(max(len(bars), 1))
	for i, b := range bars {
		x, y := float64(i)*step, float64(height)
		for _, part := range []struct {
			class string
			value float64
		}{{"good", b.Good}, {"bad", b.Bad}} {
			if part.value <= 0 {
				continue
			}
			h := max(2, part.value/c.Most*float64(height-2))
			y -= h
			c.Bars = append(c.Bars, rect{b.Label, part.class, round(x + 0.5), round(y), round(max(1, step-1)), round(h)})
		}
		if b.Good+b.Bad == 0 {
			c.Bars = append(c.Bars, rect{b.Label, "none", round(x + 0.5), float64(height) - 1, round(max(1, step-1)), 1})
		}
	}
	return c
}

// round keeps one digit, so that pages stay small.
func round(f float64) float64 { return float64(int(f*10+0.5)) / 10 }
