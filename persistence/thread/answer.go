package thread

// AnswerKind says what an [Answer] answers. The values are stored; they never change.
type AnswerKind string

// The kinds of answers.
const (
	AnswerInterrupt AnswerKind = "interrupt"
	AnswerCall      AnswerKind = "tool call"
)

// Answer is what the input of a run says to something that waits on the thread. The first answer that is recorded
// counts; a later one is an [AnsweredError].
type Answer struct {
	Kind AnswerKind
	ID   string // of the interrupt, or of the tool call
	// Digest stands for what a tool message says; empty for the answer to an interrupt.
	Digest string
	// New tells that the thread has not seen the tool message before, so that it is not a part of the story so far.
	New bool
	// Last tells that nothing but tool messages follows the tool message in the input.
	Last bool
}

// Late tells whether a is refused, when answered is the digest of the answer that counts. What merely tells again
// what the thread has seen is no second answer.
func (a Answer) Late(answered string) bool {
	return a.Kind == AnswerInterrupt || a.New || a.Last && a.Digest != answered
}
