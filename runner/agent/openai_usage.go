package agent

import (
	"strconv"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
)

// tokenUsage is what an answer cost (AG-UI 1.0, section 5.7). What the server did not report is absent.
type tokenUsage struct {
	Provider   string `json:"provider,omitempty"`
	Model      string `json:"model,omitempty"`
	Input      *int64 `json:"inputTokens,omitempty"`
	Output     *int64 `json:"outputTokens,omitempty"`
	Total      *int64 `json:"totalTokens,omitempty"`
	Reasoning  *int64 `json:"reasoningTokens,omitempty"`
	Cached     *int64 `json:"cachedInputTokens,omitempty"`
	CacheWrite *int64 `json:"cacheWriteInputTokens,omitempty"`
}

// readUsage returns what a chunk reports, or nil. Servers that report in every chunk report the sum so far.
func readUsage(u openai.CompletionUsage) *tokenUsage {
	out := tokenUsage{
		Input:      count(u.JSON.PromptTokens),
		Output:     count(u.JSON.CompletionTokens),
		Total:      count(u.JSON.TotalTokens),
		Reasoning:  count(u.CompletionTokensDetails.JSON.ReasoningTokens),
		Cached:     count(u.PromptTokensDetails.JSON.CachedTokens),
		CacheWrite: count(u.PromptTokensDetails.JSON.CacheWriteTokens),
	}
	if out == (tokenUsage{}) {
		return nil
	}
	return &out
}

// count returns a number of tokens, if it is one.
func count(field respjson.Field) *int64 {
	const most = 1<<53 - 1
	n, err := strconv.ParseInt(field.Raw(), 10, 64)
	if err != nil || n < 0 || n > most {
		return nil
	}
	return &n
}
