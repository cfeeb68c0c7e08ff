package mailbox

import "strings"

// Short is text that a mail can carry whatever somebody wrote: valid UTF-8 of at most some 4,000 bytes.
func Short(text string) string {
	const most = 4000
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " ..."
}
