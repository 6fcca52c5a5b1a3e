//go:build !integration

package main_test

// full tells whether the tests run in the sizes of the replay cases. Without the tag integration the largest are
// scaled down, so that the whole suite takes less than a minute and needs nothing installed.
const full = false
