package losslesstest_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/threadcast/threadcast/persistence/losslesstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTexts(t *testing.T) {
	names := map[string]bool{}
	for _, text := range losslesstest.Texts() {
		if names[text.Name] {
			t.Errorf("two texts are named %s", text.Name)
		}
		names[text.Name] = true
		if !json.Valid([]byte(text.JSON)) || !utf8.ValidString(text.JSON) {
			t.Errorf("%s is not JSON in UTF-8", text.Name)
		}
	}
	for _, text := range losslesstest.NotUTF8() {
		if utf8.ValidString(text.JSON) || !json.Valid([]byte(text.JSON)) {
			t.Errorf("%s: it should be JSON, and not UTF-8", text.Name)
		}
	}
}
