//go:build !race

package main_test

// underRace tells whether the tests, and so the binary, have the race detector, which makes both several times slower.
const underRace = false
