//go:build !integration

package main_test

import "testing"

// With Node at hand the cases are judged by the reference client too: see reference_test.go.
func TestReplayCases(t *testing.T) { playReplayCases(t, func(*stage) {}) }
