package agent

import (
	"context"

	"muster/internal/memory"
	"muster/internal/prompt"
	"muster/llm"
	"muster/tool"
)

// memoryInput is the input of save_memory.
type memoryInput struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Type        string `json:"type"`
	Content     string `json:"content"`
}

// MemoryTool returns the tool save_memory. save writes what the agent has said, and returns what it is told.
func MemoryTool(save func(context.Context, memory.Memory) (string, error)) llm.Tool {
	return tool.Func("save_memory", prompt.Tool("save_memory"),
		func(ctx context.Context, in memoryInput) (string, error) {
			return save(ctx, memory.Memory{Name: in.Name, Description: in.Description, Type: in.Type,
				Content: in.Content})
		}, tool.Enum("type", memory.Types()...))
}
