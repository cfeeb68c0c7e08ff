// Command bare is the least that a coding agent does, to measure muster beside: it asks a server of the Messages API,
// runs the shell commands of the reply, sends their output back, and ends when a reply has none. It keeps nothing on
// disk, knows one tool and has no library but Go's own.
//
//	ANTHROPIC_BASE_URL=http://127.0.0.1:8080 bare GOAL
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
)

type object = map[string]any

// prompt is as long as what a small agent sends before the first word of its user: 20 KB.
var prompt = strings.Repeat("The words of a prompt. ", 890)

// call is a tool call as it streams in.
type call struct {
	id    string
	input strings.Builder
}

func main() {
	if err := run(os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages", strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(url, goal string) error {
	tools := []object{{"name": "bash", "description": "Run a shell command.", "input_schema": object{"type": "object",
		"properties": object{"command": object{"type": "string"}}, "required": []string{"command"}}}}
	messages := []object{{"role": "user", "content": goal}}
	for {
		body, err := json.Marshal(object{"model": "stand-in", "max_tokens": 8000, "stream": true, "system": prompt,
			"tools":    tools,
			"metadata": object{"user_id": "lead@bare"}, "messages": messages})
		if err != nil {
			return err
		}
		calls, err := ask(url, body)
		if err != nil || len(calls) == 0 {
			return err
		}
		var uses, results []object
		for _, c := range calls {
			var in struct{ Command string }
			if err := json.Unmarshal([]byte(c.input.String()), &in); err != nil {
				return err
			}
			out, _ := exec.Command("/bin/sh", "-c", in.Command).CombinedOutput() // a red command is an answer too
			uses = append(uses, object{"type": "tool_use", "id": c.id, "name": "bash",
				"input": object{"command": in.Command}})
			results = append(results, object{"type": "tool_result", "tool_use_id": c.id, "content": string(out)})
		}
		messages = append(messages, object{"role": "assistant", "content": uses},
			object{"role": "user", "content": results})
	}
}

// ask sends a request and returns the calls of the streamed reply.
func ask(url string, body []byte) (calls []*call, err error) {
	r, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server says %s", r.Status)
	}
	for lines := bufio.NewScanner(r.Body); ; {
		if !lines.Scan() {
			return nil, fmt.Errorf("the stream broke off: %w", lines.Err())
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type  string
			Block struct{ Type, ID string } `json:"content_block"`
			Delta struct {
				Piece string `json:"partial_json"`
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return nil, err
		}
		switch {
		case e.Type == "message_stop":
			return calls, nil
		case e.Type == "content_block_start" && e.Block.Type == "tool_use":
			calls = append(calls, &call{id: e.Block.ID})
		case e.Delta.Piece != "":
			calls[len(calls)-1].input.WriteString(e.Delta.Piece)
		}
	}
}
