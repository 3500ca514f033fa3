package tokens

import "strings"

// family is what the models of a vendor make of a prompt: how their vocabulary cuts text, and what their chat template adds
// to it. Most numbers are fitted on recorded usage, so that they are those of the endpoints that serve the models, and
// the rest is documented by the vendor. Counts are tokens, shares are thousandths.
type family struct {
	names []string // a model is of the first family of which its id holds a name

	vocabulary int64 // a share: tokens of a text to those of the reference vocabulary
	request    int64 // around everything, system prompts of the vendor's own included
	turn       int64 // around each message, the system prompt being one
	thinking   int64 // where thinking is asked for

	tools  int64 // the prompt that explains tools
	tool   int64 // around each
	schema int64 // a share: what becomes of its JSON
	call   int64
	result int64

	format       int64 // the prompt that explains the schema of the answer
	formatSchema int64 // a share: what becomes of its JSON

	keepsThinking bool // of earlier turns too, not only of the one under way
	signedParts   bool // the signature of any part costs what is sealed in it, and is nothing beside it

	picture func(width, height int64) int64
	remote  int64 // a picture whose size is not known
	page    int64 // of a PDF
	second  int64 // of sound
}

var families = []family{
	{
		// From Opus 4.7 on: a vocabulary that makes up to 1.35 times the tokens, and larger pictures.
		names:      []string{"opus-4-7", "opus-4.7", "opus-4-8", "opus-4.8", "claude-opus-5", "claude-sonnet-5", "claude-haiku-5", "claude-fable", "claude-mythos"},
		vocabulary: 1350, request: 3, turn: 4, thinking: 30, tools: 510, tool: 2, schema: 1400, call: 40, result: 18,
		format: 125, formatSchema: 1400, keepsThinking: true,
		picture: claudeLargePicture, remote: 2500, page: 2600, second: 25,
	},
	{
		// The tools' prompt is documented as 346 tokens (313 where a call is forced), and recorded as that up to 4.1.
		names:      []string{"claude-3", "claude-sonnet-4-0", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4.1", "claude-sonnet-4-2", "claude-opus-4-2", "claude-2"},
		vocabulary: 1100, request: 3, turn: 4, thinking: 30, tools: 346, tool: 2, schema: 1400, call: 40, result: 18,
		picture: claudePicture, remote: 1500, page: 2600, second: 25,
	},
	{
		names:      []string{"claude-sonnet-4-5", "claude-sonnet-4.5", "claude-sonnet-4-6", "claude-sonnet-4.6", "claude-opus-4-", "claude-opus-4.", "claude-haiku-4"},
		vocabulary: 1100, request: 3, turn: 4, thinking: 30, tools: 510, tool: 2, schema: 1400, call: 40, result: 18,
		format: 125, formatSchema: 1400, keepsThinking: true,
		picture: claudePicture, remote: 1500, page: 2600, second: 25,
	},
	{
		names:      []string{"claude"},
		vocabulary: 1100, request: 3, turn: 4, thinking: 30, tools: 346, tool: 2, schema: 1400, call: 40, result: 18,
		format: 125, formatSchema: 1400,
		picture: claudePicture, remote: 1500, page: 2600, second: 25,
	},
	{
		names:      []string{"gemini-1", "gemini-2.0"},
		vocabulary: 1000, request: 1, schema: 300,
		picture: geminiPicture, remote: 258, page: 258, second: 32,
	},
	{
		names:      []string{"gemini-2", "gemini-flash", "gemini-pro"},
		vocabulary: 1000, request: 1, tools: 8, schema: 1100, call: 14, result: 5,
		picture: geminiPicture, remote: 258, page: 258, second: 32,
	},
	{
		names:      []string{"gemini", "gemma"},
		vocabulary: 1000, request: 1, tools: 12, schema: 1100, call: 14, result: 5, signedParts: true,
		picture: func(int64, int64) int64 { return 1120 }, remote: 1120, page: 560, second: 32,
	},
	{
		names:      []string{"gpt-oss"}, // the Harmony format has a system prompt of its own
		vocabulary: 1000, request: 66, turn: 4, tools: 12, tool: 4, schema: 900, call: 20, result: 12,
		formatSchema: 1000, picture: gptPicture, remote: 765, page: 800, second: 10,
	},
	{
		names:      []string{"grok"},
		vocabulary: 1000, request: 6, turn: 4, tools: 260, tool: 4, schema: 1400, call: 70, result: 30,
		formatSchema: 1000, picture: gptPicture, remote: 765, page: 800, second: 10,
	},
	{
		names:      []string{"deepseek-v4"},
		vocabulary: 1000, request: 83, turn: 1, tools: 230, tool: 4, schema: 1200, call: 25, result: 12,
		formatSchema: 1000, picture: claudePicture, remote: 1000, page: 800, second: 10,
	},
	{
		names:      []string{"deepseek"},
		vocabulary: 1000, request: 3, turn: 1, tools: 230, tool: 4, schema: 1200, call: 25, result: 12,
		formatSchema: 1000, picture: claudePicture, remote: 1000, page: 800, second: 10,
	},
	{
		names:      []string{"glm"},
		vocabulary: 1000, request: 4, turn: 3, tools: 120, tool: 6, schema: 1400, call: 25, result: 8,
		formatSchema: 1000, picture: claudePicture, remote: 1000, page: 800, second: 10,
	},
	{
		names:      []string{"kimi", "moonshot"},
		vocabulary: 1000, request: 4, turn: 4, tools: 5, tool: 6, schema: 1100, call: 22, result: 8,
		formatSchema: 1000, picture: claudePicture, remote: 1000, page: 800, second: 10,
	},
	{
		names:      []string{"minimax"},
		vocabulary: 1000, request: 37, turn: 4, tools: 120, tool: 6, schema: 1200, call: 25, result: 8,
		formatSchema: 1000, picture: claudePicture, remote: 1000, page: 800, second: 10,
	},
	{
		names:      []string{"mixtral", "mistral-7b"}, // a vocabulary of 32,000
		vocabulary: 1300, request: 3, turn: 3, tools: 45, tool: 6, schema: 1400, call: 12, result: 8,
		formatSchema: 1000, picture: claudePicture, remote: 1000, page: 800, second: 10,
	},
	{
		names:      []string{"mistral", "ministral", "magistral", "codestral", "devstral", "pixtral"},
		vocabulary: 1000, request: 2, turn: 2, thinking: 12, tools: 45, tool: 6, schema: 1400, call: 12, result: 8,
		formatSchema: 1000, picture: claudePicture, remote: 1000, page: 800, second: 10,
	},
	{
		names:      []string{"qwen3-coder", "qwen-3-coder"}, // its prompt for tools shows an example
		vocabulary: 1000, request: 5, turn: 4, tools: 230, tool: 6, schema: 1200, call: 22, result: 8,
		formatSchema: 1000, picture: qwenPicture, remote: 260, page: 800, second: 25,
	},
	{
		names:      []string{"qwen"},
		vocabulary: 1000, request: 5, turn: 4, tools: 85, tool: 6, schema: 1200, call: 22, result: 8,
		formatSchema: 1000, picture: qwenPicture, remote: 260, page: 800, second: 25,
	},
	{
		names:      []string{"llama"}, // the template tells the date
		vocabulary: 1000, request: 30, turn: 5, tools: 85, tool: 6, schema: 1200, call: 22, result: 8,
		formatSchema: 1000, picture: claudePicture, remote: 1000, page: 800, second: 10,
	},
	{
		names:      []string{"sonar"},
		vocabulary: 1000, request: 1, turn: 1, tools: 85, tool: 6, schema: 1200, call: 22, result: 8,
		formatSchema: 1000, picture: gptPicture, remote: 765, page: 800, second: 10,
	},
	{
		names:      []string{"gpt-4.1-mini", "gpt-4.1-nano", "o4-mini"},
		vocabulary: 1000, request: 3, turn: 4, tools: 8, tool: 4, schema: 600, call: 12, result: 6,
		format: 6, formatSchema: 1100,
		picture: gptPatches, remote: 1536, page: 800, second: 10,
	},
	{
		names:      []string{"gpt-5-mini", "gpt-5-nano"},
		vocabulary: 1000, turn: 4, tools: 10, tool: 4, schema: 600, call: 12, result: 6,
		format: 6, formatSchema: 1100,
		picture: gptPatches, remote: 1536, page: 800, second: 10,
	},
	{
		names:      []string{"gpt-5", "gpt-6"},
		vocabulary: 1000, turn: 4, tools: 10, tool: 4, schema: 600, call: 12, result: 6,
		format: 6, formatSchema: 1100,
		picture: gptPicture, remote: 765, page: 800, second: 10,
	},
	{
		// GPT and the o series; a model of which nothing is known is taken for one. Declarations become TypeScript.
		names:      []string{""},
		vocabulary: 1000, request: 3, turn: 4, tools: 8, tool: 4, schema: 600, call: 12, result: 6,
		format: 6, formatSchema: 1100,
		picture: gptPicture, remote: 765, page: 800, second: 10,
	},
}

func familyOf(model string) *family {
	model = strings.ToLower(model)
	for i := range families {
		for _, name := range families[i].names {
			if strings.Contains(model, name) {
				return &families[i]
			}
		}
	}
	return &families[len(families)-1]
}

// scale shrinks a picture in proportion until its longer side has at most the given length.
func scale(width, height, longest int64) (w, h int64) {
	if side := max(width, height); side > longest {
		return max(1, width*longest/side), max(1, height*longest/side)
	}
	return width, height
}

// Anthropic documents width x height / 750, of pictures that are first made to fit.
func claudePicture(width, height int64) int64 {
	width, height = scale(width, height, 1568)
	return min(1600, width*height/750+1)
}

func claudeLargePicture(width, height int64) int64 {
	width, height = scale(width, height, 2576)
	return min(4784, width*height/750+1)
}

// OpenAI documents 85 tokens and 170 for each tile of 512 pixels, of pictures that are made to fit 2048 pixels, and 768 on
// the shorter side.
func gptPicture(width, height int64) int64 {
	width, height = scale(width, height, 2048)
	if shorter := min(width, height); shorter > 768 {
		width, height = width*768/shorter, height*768/shorter
	}
	return 85 + 170*((width+511)/512)*((height+511)/512)
}

// Of smaller models OpenAI documents patches of 32 pixels, at most 1536, times 1.62 to 2.46.
func gptPatches(width, height int64) int64 {
	return 2 * min(1536, ((width+31)/32)*((height+31)/32))
}

// Google documents 258 tokens, for each tile of 768 pixels where a side has more than 384.
func geminiPicture(width, height int64) int64 {
	if max(width, height) <= 384 {
		return 258
	}
	width, height = scale(width, height, 3072)
	return 258 * ((width + 767) / 768) * ((height + 767) / 768)
}

// Qwen makes a token of each square of 28 pixels.
func qwenPicture(width, height int64) int64 {
	width, height = scale(width, height, 3584)
	return min(16384, max(4, width*height/784))
}
