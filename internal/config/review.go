package config

import (
	"strconv"

	"muster"
)

// defaultReviewer is the built-in role that reviews.
const defaultReviewer = "reviewer"

// reviewer returns the role that the text of review names, "" for none. The word true stands for the built-in role, and
// false for none.
func reviewer(text string) string {
	switch text {
	case "true":
		return defaultReviewer
	case "false":
		return ""
	}
	return text
}

func checkReviewRole(role string) error {
	if muster.RoleKey(role) == "" {
		return muster.Errorf(muster.Invalid, "review is the name of a role, not %s", strconv.Quote(role))
	}
	return nil
}
