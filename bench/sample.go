package main

import "slices"

// median returns the median; 0 for no numbers.
func median(all []float64) float64 { return quantile(all, 0.5) }

// quantile returns the smallest number such that a share of all does not exceed it; 0 for no
// numbers.
func quantile(all []float64, share float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	if i := int(share * float64(n)); i < n {
		if share == 0.5 && n%2 == 0 {
			return (sorted[i-1] + sorted[i]) / 2
		}
		return sorted[i]
	}
	return sorted[n-1]
}

// ratios divides the figures of the same rounds.
func ratios(of, by []float64) (shares []float64) {
	for i := range min(len(of), len(by)) {
		shares = append(shares, of[i]/by[i])
	}
	return shares
}
