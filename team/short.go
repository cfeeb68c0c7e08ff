package team

import "muster/internal/mailbox"

// short is text that a mail can carry whatever somebody wrote.
func short(text string) string { return mailbox.Short(text) }
