package config

import (
	"strconv"

	"muster"
)

// defaultReviewer is the built-in role that reviews.
const defaultReviewer = "reviewer"

// Reviewer returns the role that reviews all work before it lands, "" for none. The word true stands for the built-in
// role, and false for none.
func (s Settings) Reviewer() string {
	switch s.Review {
	case "true":
		return defaultReviewer
	case "false":
		return ""
	}
	return s.Review
}

func checkReviewRole(role string) error {
	if muster.RoleKey(role) == "" {
		return muster.Errorf(muster.Invalid, "review is the name of a role, not %s", strconv.Quote(role))
	}
	return nil
}
