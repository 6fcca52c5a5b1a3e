//go:build integration

package main_test

// full tells whether the tests run in the sizes of the replay cases.
const full = true
