// Package losslesstest is the material of all tests that something is carried without loss: JSON texts that a store may
// be tempted to change, or a database to refuse. The conformance suites of live logs (package logtest) and of histories
// (package historytest) put them through every driver, and the tests of the command put them through all of it, from the
// agent to a viewer who comes after a restart.
package losslesstest

import "strings"

// Text is one of them, by what is special about it.
type Text struct {
	Name string
	JSON string // valid JSON in valid UTF-8
}

// Texts returns them all. What comes out has to be what went in, byte for byte.
func Texts() []Text {
	return []Text{
		{"escaped NUL and controls", `{"type":"TEXT_MESSAGE_CONTENT","delta":"a\u0000b\u0001c\u007fd\uffffe"}`},
		{"NUL in a name", `{"a\u0000b":1,"\u0000":{"\u0000":"\u0000"}}`},
		{"halves of surrogate pairs", `{"delta":"lone \ud800 end","other":"\udc00\ud800","last":"\udbff"}`},
		{"a half in a name", `{"\ud800":1,"\udc00":2}`},
		{"an escaped pair", `{"delta":"\ud83d\ude00","upper":"\uD83D\uDE00"}`},
		{"JSON within a string", `{"delta":"{\"p\":\"C:\\u0000\\\\\\\"]}\"}"}`},
		{"numbers beyond 2^53", `{"big":9007199254740993,"neg":-9007199254740993,"max":9223372036854775807,"over":18446744073709551616}`},
		{"numbers beyond all types", `{"long":123456789012345678901234567890,"e":1e400,"-e":-1E+400,"tiny":1e-400}`},
		{"spellings of numbers", `{"zero":-0,"z":-0.0,"f":1.0,"e":1E2,"p":1e+02,"x":0.1000000000000000055511151231257827}`},
		{"names that come twice", `{"zeta":1,"alpha":2,"zeta":3,"":4,"":5,"z\u0065ta":6}`},
		{"the order of names", `{"zeta":1,"10":2,"9":3,"alpha":{"b":1,"a":2},"Alpha":4}`},
		{"what HTML would escape", `{"html":"</script>&<!-- -->","quote":"'","u":"\u003c\/script\u003E"}`},
		{"spellings of characters", `{"a":"\u00e9","b":"é","c":"e\u0301","d":"\/","e":"\u002F","f":"/"}`},
		{"strange characters", "{\"raw\":\"\u2028\u2029\u007f\u0085\ufffd\ufeff\U0010ffff e\u0301\u00e9 \u202e\"}"},
		{"null and empty values", `{"null":null,"false":false,"empty":"","list":[],"object":{},"nested":[[[[]],{"]":"["}]]}`},
		{"white space inside", "{\n  \"pretty\": [\n\t1,\r\n\t2\n  ]\n}"},
		{"white space around", " \t\r\n{\"space\" : \"around\"} \n"},
		{"an empty object", `{}`}, {"an empty list", `[]`}, {"an empty string", `""`}, {"null", `null`}, {"true", `true`}, {"zero", `0`},
		{"a list", `[1,1,{"a":2}]`}, {"a bracket", `"]"`}, {"a quote", `"\""`}, {"a backslash", `"\\"`}, {"both", `"\\\""`},
		{"what looks like another type", `{"date":"2024-01-02 03:04:05","bytes":"\\x00","number":"1.50","null":"null"}`},
		{"a string of 1 MB", `{"long":"` + strings.Repeat("0123456789abcdef", 1<<16) + `"}`},
		{"deep nesting", strings.Repeat("[", 2000) + strings.Repeat("]", 2000)},
	}
}

// NotUTF8 returns JSON texts that are not valid UTF-8, by what is wrong with them. A history refuses them with
// thread.ErrBadInput, whichever column they are for; a live log does not look into what it carries.
func NotUTF8() []Text {
	return []Text{
		{"a byte that never occurs", "{\"a\":\"\xff\"}"},
		{"a pair cut off", "{\"a\":\"\xf0\x9f\x98\"}"},
		{"a tail alone", "{\"a\":\"\x80\"}"},
		{"an overlong NUL", "{\"a\":\"\xc0\x80\"}"},
		{"half of a surrogate pair", "{\"a\":\"\xed\xa0\x80\"}"},
		{"beyond Unicode", "{\"a\":\"\xf4\x90\x80\x80\"}"},
	}
}
