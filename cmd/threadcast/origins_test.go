package main

import "testing"

func TestOrigins(t *testing.T) {
	for flag, values := range map[string]map[string]bool{
		"--allow-origin": {
			"*": true, "https://chat.example": true, "http://localhost:3000": true, "capacitor://localhost": true, "http://[::1]:8080": true,
			"": false, "chat.example": false, "https://chat.example/": false, "https://chat.example/x": false, "HTTPS://chat.example": false,
			"https://Chat.example": false, "https://chat.example:443": false, "http://chat.example:80": false, "https://chat.example:80": true, "null": false,
		},
		"--public-url": {
			"https://chat.example": true, "http://chat.example:8080/tc": true, "": true,
			"chat.example": false, "ws://chat.example": false, "https://chat.example/?x": false, "https://me@chat.example": false, "https://": false,
		},
		"--copilotkit-path": {
			"/api/copilotkit": true, "/x": true, "": false, "/": false, "x": false, "/x/": false, "//x": false, "/:x": false, "/x*": false, "/a b": false,
		},
	} {
		for value, fine := range values {
			_, err := load([]string{flag, value}, variables(nil))
			if (err == nil) != fine {
				t.Errorf("%s %q: %v", flag, value, err)
			}
		}
	}
}
