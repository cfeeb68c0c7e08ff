package chat

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"muster"
	"muster/internal/lazyregexp"
)

// mentionPattern finds what is named with an @ at the start of a word, in quotation marks or without.
var mentionPattern = lazyregexp.New(`(?:^|[\s(])@(?:"([^"\n]+)"|([^\s"]+))`)

// maxMentions is how many files of one message are looked at.
const maxMentions = 20

// withMentions returns a message with what the lead must know about the files that it names with @. A file that is in
// the lead's checkout as it is needs no word. Another one is copied to where the lead can read it, and the message says
// where. What names no file is left alone.
//
// typed is the user's own part of the message. Only the files that it names count: a command of the repository could
// name any file of the user's machine.
func (s *Session) withMentions(ctx context.Context, text, typed string) string {
	var notes []string
	for _, path := range mentionedPaths(typed) {
		if s.Share == nil || len(notes) == maxMentions {
			break
		}
		shared, err := s.Share(ctx, path)
		// A sentence may end behind a name.
		if trimmed := strings.TrimRight(path, ".,;:!?)"); errors.Is(err, muster.ErrNotFound) && trimmed != path {
			path = trimmed
			shared, err = s.Share(ctx, path)
		}
		switch {
		case errors.Is(err, muster.ErrNotFound):
		case err != nil:
			s.Face.Print("@" + path + " does not reach the lead: " + muster.PlainText(err))
		case shared != "":
			notes = append(notes, Mention(path)+" as I have it is not in your checkout: read_file "+shared)
		}
	}
	// The lead reads the user's own words first, and the note behind them.
	if len(notes) == 0 {
		return text
	}
	return text + "\n\n(" + strings.Join(notes, "\n") + ")"
}

// mentionedPaths returns what a text names with @, each once.
func mentionedPaths(text string) (paths []string) {
	for _, m := range mentionPattern().FindAllStringSubmatch(text, -1) {
		if path := m[1] + m[2]; !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// imagePattern finds the endings of the images that models take.
var imagePattern = lazyregexp.New(`(?i)\.(png|jpe?g|gif|webp)$`)

// PastedImage returns what a pasted text is put into a message as. A terminal pastes the path of a file that is dropped
// on it, in quotation marks or with backslashes; of an image it becomes a mention, which the lead can look at. All else
// stays as it is. exists reports whether there is such a file.
func PastedImage(text string, exists func(path string) bool) string {
	path := strings.TrimSpace(text)
	if address, ok := strings.CutPrefix(path, "file://"); ok {
		path, _ = url.PathUnescape(address) // what cannot be decoded is no file
	}
	// Terminals quote a path in one of these two ways.
	if unquoted := strings.Trim(path, `'"`); unquoted != path {
		path = unquoted
	} else {
		path = strings.ReplaceAll(path, `\ `, " ")
	}
	if strings.ContainsAny(path, "\n\"") || !imagePattern().MatchString(path) || !exists(path) {
		return text
	}
	return Mention(path) + " "
}
