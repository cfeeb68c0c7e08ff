package wire

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/llm"
)

// answer is what a server has sent with an error.
type answer struct {
	status int
	body   string
}

// says is the error of most servers with a message.
func says(status int, message string) answer {
	return answer{status, fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error"}}`, message)}
}

// tooLong is what servers say of a conversation that is longer than the window of the model.
var tooLong = map[string]answer{
	"OpenAI":                              {400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130512 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`},
	"OpenAI, Responses":                   {400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`},
	"OpenAI, more than a minute's tokens": {429, `{"error":{"message":"Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 53112. The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}`},
	"Anthropic":                           {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`},
	"Anthropic, with the reply":           says(400, "input length and `max_tokens` exceed context limit: 190012 + 20000 > 200000, decrease input length or `max_tokens` and try again"),
	"Anthropic, bytes":                    {413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`},
	"a proxy":                             {413, "<html><head><title>413 Request Entity Too Large</title></head></html>"},
	"vLLM":                                {400, `{"object":"error","message":"This model's maximum context length is 8192 tokens. However, you requested 9201 tokens in the messages, Please reduce the length of the messages.","type":"BadRequestError","param":null,"code":400}`},
	"vLLM, prompt":                        says(400, "The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure that `max_model_len` is no smaller than the number of text tokens."),
	"SGLang":                              says(400, "The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
	"SGLang, requested":                   says(400, "Requested token count exceeds the model's maximum context length of 8192 tokens."),
	"llama.cpp":                           {400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`},
	"llama.cpp, older":                    {500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"server_error"}}`},
	"llama-cpp-python":                    says(400, "Requested tokens (9000) exceed context window of 8192"),
	"Ollama":                              {400, `{"error":"the input length exceeds the context length"}`},
	"Ollama, newer":                       {400, `{"error":"prompt too long; exceeded max context length by 812 tokens"}`},
	"LM Studio":                           {400, `{"error":"Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"}`},
	"LM Studio, kept":                     {400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input"}`},
	"Gemini":                              {400, `[{"error":{"code":400,"message":"The input token count (1200123) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`},
	"Gemini, bytes":                       says(400, "Request payload size exceeds the limit: 20971520 bytes."),
	"Groq":                                says(400, "Please reduce the length of the messages or completion."),
	"OpenRouter":                          {400, `{"error":{"message":"This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (138000 of text input, 2000 in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400}}`},
	"Bedrock":                             {400, `{"message":"Input is too long for requested model."}`},
	"Bedrock, Nova":                       {400, `{"message":"Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again."}`},
	"Qwen":                                {400, `{"error":{"code":"invalid_parameter_error","message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]","type":"invalid_request_error"}}`},
	"Z.ai":                                {400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`},
	"MiniMax":                             {400, `{"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)","http_code":"400"}}`},
	"Kimi":                                {400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144 (requested: 270031)","type":"invalid_request_error"}}`},
	"DeepSeek":                            says(400, "This model's maximum context length is 131072 tokens. However, you requested 140225 tokens (136129 in the messages, 4096 in the completion). Please reduce the length of the messages or completion."),
	"TGI":                                 {422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 512 `max_new_tokens`\",\"error_type\":\"validation\"}"},
	"TGI, inputs":                         {422, "{\"error\":\"Input validation error: `inputs` must have less than 4095 tokens. Given: 5012\",\"error_type\":\"validation\"}"},
	"Mistral":                             {400, `{"object":"error","message":"Prompt contains 40012 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}`},
	"xAI":                                 {400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 150310 tokens."}`},
	"Cohere":                              {400, `{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000. Try using a shorter prompt"}`},
	"Cohere, size":                        {400, `{"message":"too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs. The limit for this model is 128000 tokens."}`},
	"Copilot":                             {400, `{"error":{"message":"prompt token count of 70123 exceeds the limit of 64000","code":"model_max_prompt_tokens_exceeded"}}`},
	"Fireworks":                           says(400, "The prompt is too long: 200123, model maximum context length: 131071"),
	"TensorRT-LLM":                        says(400, "Prompt length (9000) exceeds maximum input length (8192)."),
	"TabbyAPI":                            says(400, "Prompt length 9000 is greater than max_seq_len 8192"),
	"SiliconFlow":                         {400, `{"code":20015,"message":"length of prompt_tokens (9000) must be less than max_seq_len (8192).","data":null}`},
	"Cloudflare":                          {400, `{"errors":[{"message":"AiError: The estimated number of input and maximum output tokens (9000) exceeded this model context window limit (8192).","code":5021}]}`},
	"Volcengine":                          says(400, "Total tokens of image and text exceed max message tokens"),
	"LiteLLM":                             says(400, "litellm.ContextWindowExceededError: litellm.BadRequestError: AnthropicException"),
	"words of nobody yet":                 says(400, "The conversation has more tokens than fit: 9000 is beyond the context window of 8192"),
}

func TestContextFull(t *testing.T) {
	p := Peer{URL: "http://h/v1", Model: "m"}
	for who, a := range tooLong {
		if e := p.errorForResponse(a.status, nil, []byte(a.body)); e.Kind != llm.ContextFull {
			t.Errorf("%s: %v", who, e)
		}
		if a.status >= 413 { // a proxy answers before a stream, and servers that say so by their status too
			continue
		}
		if e := p.ErrorInStream([]byte(a.body)); strings.HasPrefix(a.body, "{") && e.Kind != llm.ContextFull {
			t.Errorf("%s, in a stream: %v", who, e)
		}
	}
	t.Logf("%d wordings", len(tooLong))
}

// What sounds alike, and is something else.
func TestNotContextFull(t *testing.T) {
	p := Peer{URL: "http://h/v1", Model: "m"}
	for _, a := range []answer{
		says(400, "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for claude-x"),
		says(400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000."),
		says(400, "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 2000 instead."),
		says(400, "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead."),
		says(400, "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes"),
		says(400, "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1"),
		says(400, "`thinking.budget_tokens` must be less than `max_tokens`"),
		says(429, "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s."),
		says(429, "This request would exceed your organization's rate limit of 40,000 input tokens per minute"),
		says(400, "temperature: range: 0..1"),
		says(500, "Internal server error"),
	} {
		if e := p.errorForResponse(a.status, nil, []byte(a.body)); e.Kind == llm.ContextFull {
			t.Errorf("%s: %v", a.body, e)
		}
	}
}

// What passes by itself is told from what does not, though servers use one status for both.
func TestTroubles(t *testing.T) {
	p := Peer{URL: "http://h/v1", Model: "m"}
	for name, c := range map[string]struct {
		answer
		want  llm.Kind
		after time.Duration
	}{
		"a plain 429":           {answer{429, ""}, llm.Limited, 0},
		"429, in words":         {says(429, "Rate limit reached. Please try again in 1.5s."), llm.Limited, 1500 * time.Millisecond},
		"429, minutes":          {says(429, "Rate limit reached on tokens per day. Please try again in 7m12.5s. Need more?"), llm.Limited, 7*time.Minute + 12500*time.Millisecond},
		"429, Azure":            {says(429, "Requests have exceeded call rate limit. Please retry after 6 seconds."), llm.Limited, 6 * time.Second},
		"429, Gemini's minute":  {answer{429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}]`}, llm.Limited, 34 * time.Second},
		"429, Mistral":          {answer{429, `{"object":"error","message":"Service tier capacity exceeded for this model.","type":"invalid_request_error","code":"3505"}`}, llm.Limited, 0},
		"429, Qwen's minute":    {answer{429, `{"error":{"message":"Allocated quota exceeded, please increase your quota limit.","type":"insufficient_quota","code":"insufficient_quota"}}`}, llm.Limited, 0},
		"429, Kimi is full":     {answer{429, `{"error":{"message":"The engine is currently overloaded, please try again later","type":"engine_overloaded_error"}}`}, llm.Overloaded, 0},
		"529":                   {answer{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, llm.Overloaded, 0},
		"503, a gateway":        {answer{503, "upstream connect error or disconnect/reset before headers"}, llm.Overloaded, 0},
		"524, Cloudflare":       {answer{524, "error code: 524"}, llm.Overloaded, 0},
		"500":                   {answer{500, "{}"}, llm.Overloaded, 0},
		"504":                   {answer{504, ""}, llm.Overloaded, 0},
		"408":                   {answer{408, ""}, llm.Overloaded, 0},
		"409":                   {answer{409, ""}, llm.Overloaded, 0},
		"402":                   {answer{402, ""}, llm.Spent, 0},
		"OpenAI's quota":        {answer{429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","code":"insufficient_quota"}}`}, llm.Spent, 0},
		"Anthropic's credit":    {says(400, "Your credit balance is too low to access the Anthropic API."), llm.Spent, 0},
		"a spend limit":         {says(429, "you have reached your spend limit"), llm.Spent, 0},
		"Anthropic's limit":     {says(400, "You have reached your specified API usage limits. You will regain access on 2027-01-01 at 00:00 UTC."), llm.Spent, 0},
		"Z.ai's balance":        {answer{429, `{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}`}, llm.Spent, 0},
		"Kimi's balance":        {answer{429, `{"error":{"message":"Your account org-x is suspended, please check your plan and billing details","type":"exceeded_current_quota_error"}}`}, llm.Spent, 0},
		"DeepSeek's balance":    {answer{402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}}`}, llm.Spent, 0},
		"xAI's credits":         {answer{403, `{"code":"The caller does not have permission","error":"Your team x has either used all available credits or reached its monthly spending limit."}`}, llm.Spent, 0},
		"Qwen's arrears":        {answer{400, `{"error":{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing.","type":"Arrearage"}}`}, llm.Spent, 0},
		"OpenRouter's credits":  {answer{402, `{"error":{"message":"This request requires more credits, or fewer max_tokens.","code":402}}`}, llm.Spent, 0},
		"401":                   {says(401, "invalid x-api-key"), llm.Denied, 0},
		"403":                   {answer{403, ""}, llm.Denied, 0},
		"404":                   {answer{404, ""}, llm.Denied, 0},
		"400, DeepSeek's model": {says(400, "Model Not Exist"), llm.Denied, 0},
		"400, OpenRouter's":     {says(400, "foo/bar is not a valid model ID"), llm.Denied, 0},
		"400":                   {says(400, "temperature: range: 0..1"), llm.BadRequest, 0},
		"422":                   {answer{422, `{"detail":[{"msg":"field required"}]}`}, llm.BadRequest, 0},
		"400, a code":           {answer{400, `{"error":{"message":"none","code":"model_not_found"}}`}, llm.Denied, 0},
	} {
		e := p.errorForResponse(c.status, http.Header{}, []byte(c.body))
		if e.Kind != c.want || e.After != c.after || e.Status != c.status {
			t.Errorf("%s: %v after %v, status %d, want %s after %v", name, e, e.After, e.Status, c.want, c.after)
		}
	}
}

// What servers say of a conversation whose messages do not follow each other as they must.
func TestBadHistory(t *testing.T) {
	p := Peer{URL: "http://h/v1", Model: "m"}
	for _, message := range []string{
		"messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
		"messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
		"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
		"The following tool_call_ids did not have response messages: call_1",
		"messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
		"No tool output found for function call call_1.",
		"No tool call found for function call output with call_id call_1.",
		"Not the same number of function calls and responses",
		"Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
		"Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
		"Item 'rs_1' of type 'reasoning' was provided without its required following item.",
		"messages.1.content.0: Invalid `signature` in `thinking` block",
		"The `reasoning_content` in the thinking mode must be passed back to the API.",
		"Function call is missing a thought_signature in functionCall parts.",
		"invalid params, tool result's tool id(call_1) not found (2013)",
		"Conversation roles must alternate user/assistant/user/assistant/...",
		"Unexpected role 'user' after role 'tool'",
		"Unexpected role RoleEnum.assistant",
		"Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
		"thinking is enabled but reasoning_content is missing in assistant tool call message at index 13",
		"Missing `reasoning_content` field in the assistant message at message index 3.",
	} {
		if e := p.errorForResponse(400, nil, fmt.Appendf(nil, `{"error":{"message":%q}}`, message)); e.Kind != llm.BadHistory {
			t.Errorf("%s: %v", message, e)
		}
	}
	for _, body := range []string{
		`{"error":{"code":"400","message":"Param Incorrect","param":"The reasoning_content in the thinking mode must be passed back to the API.","type":""}}`,
		`{"object":"error","message":"Bad order","type":"invalid_request_message_order","param":null,"code":"3230"}`,
	} {
		if e := p.errorForResponse(400, nil, []byte(body)); e.Kind != llm.BadHistory {
			t.Errorf("%s: %v", body, e)
		}
	}
	// A new conversation would be refused for these as well.
	for _, message := range []string{
		"messages.2.assistant.reasoning_content: Extra inputs are not permitted",
		"property 'reasoning_content' is unsupported",
		"Invalid 'reasoning_content': string too long.",
		"messages[0].role: unexpected role 'developer', expected one of system, user, assistant, tool",
		"Unexpected role: system",
	} {
		if e := p.errorForResponse(400, nil, fmt.Appendf(nil, `{"error":{"message":%q}}`, message)); e.Kind == llm.BadHistory {
			t.Errorf("%s: %v", message, e)
		}
	}
}
