package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"muster"
	"muster/llm"
	"muster/tool"
)

// resourceInput is the input of read_resource.
type resourceInput struct {
	Server string `json:"server"`
	URI    string `json:"uri"`
}

// listResources lists the resources of all servers.
func (p *Pool) listResources(ctx context.Context, _ struct{}) (all llm.Result, err error) {
	for _, s := range p.servers {
		if s.known == nil || !s.known.Resources {
			continue
		}
		r, err := s.do(ctx, s.resources)
		if err != nil {
			return llm.Result{}, err
		}
		all.Parts = append(all.Parts, llm.Text{Text: s.Name + ":\n" + r.Text()})
	}
	return all, nil
}

// resources lists the resources of a server, and the patterns of URIs that it knows.
func (s *server) resources(ctx context.Context, x *session) (llm.Result, error) {
	all, err := collect(x.Resources(ctx, nil))
	if err != nil {
		return llm.Result{}, err
	}
	var lines []string
	for _, r := range all {
		lines = append(lines, fmt.Sprintf("- %s: %s %s", foreign(r.URI, maxDescription), foreign(r.Name, maxSaid),
			foreign(r.Description, maxSaid)))
	}
	// Many servers have no patterns, and refuse to list them.
	if r, err := x.ListResourceTemplates(ctx, nil); err == nil {
		for _, t := range r.ResourceTemplates {
			lines = append(lines, fmt.Sprintf("- %s (a pattern): %s %s", foreign(t.URITemplate, maxDescription),
				foreign(t.Name, maxSaid), foreign(t.Description, maxSaid)))
		}
	}
	if len(lines) == 0 {
		return tool.Text("It has none now."), nil
	}
	if more := len(lines) - maxResources; more > 0 {
		lines = append(lines[:maxResources], fmt.Sprintf("and %d more", more))
	}
	return tool.Text(strings.Join(lines, "\n")), nil
}

// readResource reads a resource.
func (p *Pool) readResource(ctx context.Context, in resourceInput, noImages bool) (llm.Result, error) {
	s := p.server(in.Server)
	if s == nil {
		return llm.ErrorResult("There is no server %q. list_resources names those with resources.", in.Server), nil
	}
	return s.do(ctx, func(ctx context.Context, x *session) (out llm.Result, err error) {
		r, err := x.ReadResource(ctx, &sdk.ReadResourceParams{URI: in.URI})
		if err != nil {
			return out, err
		}
		for _, c := range r.Contents {
			out.Parts = append(out.Parts, resource(c, noImages))
		}
		if len(out.Parts) == 0 {
			return tool.Text("It is empty."), nil
		}
		return out, nil
	})
}

// Prompts returns the prompts that the servers have, in the order of servers and names.
func (p *Pool) Prompts() (all []Prompt) {
	for _, s := range p.servers {
		if s.known != nil {
			all = append(all, s.known.Prompts...)
		}
	}
	return all
}

// Prompt returns the text of a prompt. The error is Invalid where the server refuses, or is not there.
func (p *Pool) Prompt(ctx context.Context, server, name string, arguments map[string]string) (string, error) {
	isNamed := func(x Prompt) bool { return x.Server == server && x.Name == name }
	if !slices.ContainsFunc(p.Prompts(), isNamed) {
		return "", muster.Errorf(muster.NotFound, "there is no prompt %q of a server %q", name, server)
	}
	r, err := p.server(server).do(ctx, func(ctx context.Context, x *session) (out llm.Result, err error) {
		r, err := x.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: arguments})
		if err != nil {
			return out, err
		}
		for _, m := range r.Messages {
			out.Parts = append(out.Parts, parts([]sdk.Content{m.Content}, true)...)
		}
		return out, nil
	})
	if err == nil && r.IsError {
		err = muster.Errorf(muster.Invalid, "%s", r.Text())
	}
	return r.Text(), err
}
