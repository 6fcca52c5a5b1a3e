package agent

import (
	"mime"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
)

// unreadable stands for a message of which nothing can be sent: the API takes no empty one.
const unreadable = "(The user sent something that this model cannot read.)"

// readParts makes the parts of a user's message (AG-UI 1.0, section 5.3). What the API has no form for is left out. It
// tells whether there is more than text: text alone is better sent as a string, which every server takes.
func readParts(parts []members, provider string) (out []openai.ChatCompletionContentPartUnionParam, mixed bool) {
	for _, p := range parts {
		part, ok := readPart(p, provider)
		if ok {
			out = append(out, part)
		}
		mixed = mixed || p.text("type") != "text"
	}
	if mixed && len(out) == 0 {
		out = append(out, openai.TextContentPart(unreadable))
	}
	return out, mixed
}

func readPart(p members, provider string) (part openai.ChatCompletionContentPartUnionParam, ok bool) {
	s := source{members: readMembers(p["source"])}
	switch p.text("type") {
	case "text":
		text := p.text("text")
		return openai.TextContentPart(text), text != ""
	case "image":
		url := s.url()
		return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: url}), url != ""
	case "audio":
		audio := openai.ChatCompletionContentPartInputAudioInputAudioParam{Data: s.data(), Format: audioFormat(s.mime())}
		return openai.InputAudioContentPart(audio), audio.Data != "" && audio.Format != ""
	case "document":
		var file openai.ChatCompletionContentPartFileFileParam
		if id := s.file(provider); id != "" {
			file.FileID = param.NewOpt(id)
			return openai.FileContentPart(file), true
		}
		url := s.url()
		file.FileData, file.Filename = param.NewOpt(url), param.NewOpt(fileName(p, s.mime()))
		return openai.FileContentPart(file), strings.HasPrefix(url, "data:")
	}
	return part, false
}

// source tells where the content of a part is.
type source struct{ members }

// data returns content that is there, in base64.
func (s source) data() string {
	if s.text("type") != "data" {
		return ""
	}
	return s.text("value")
}

// mime returns the media type without its parameters.
func (s source) mime() string {
	kind, _, err := mime.ParseMediaType(s.text("mimeType"))
	if err != nil {
		return ""
	}
	return kind
}

// url returns where the content can be had from anywhere, or the content itself as a data URL. Other schemes name what
// only this machine or the server's may have, and are not for clients to ask for.
func (s source) url() string {
	if data := s.data(); data != "" {
		return "data:" + s.mime() + ";base64," + data
	}
	url := s.text("value")
	scheme, _, _ := strings.Cut(url, ":")
	switch strings.ToLower(scheme) {
	case "http", "https", "data":
		if s.text("type") == "url" {
			return url
		}
	}
	return ""
}

// file returns the handle of a file that this provider keeps.
func (s source) file(provider string) string {
	if s.text("type") != "file" || s.text("provider") != provider {
		return ""
	}
	return s.text("value")
}

// audioFormat returns the API's name for a media type; empty if it has none.
func audioFormat(mime string) string {
	switch mime {
	case "audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave":
		return "wav"
	case "audio/mpeg", "audio/mp3":
		return "mp3"
	}
	return ""
}

// fileName returns the name that a document has, or one for its kind.
func fileName(p members, mime string) string {
	if name := readMembers(p["metadata"]).text("filename"); name != "" {
		return name
	}
	if mime == "application/pdf" {
		return "document.pdf"
	}
	return "document"
}
