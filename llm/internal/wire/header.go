package wire

import (
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"muster/internal/redact"
)

// checkHeader returns an error for a header that cannot be sent. It names the header and never its value.
func checkHeader(header http.Header) error {
	for name, values := range header {
		for _, value := range values {
			isSecret := len(redact.InHeader(name, value)) > 0
			isASCII := !strings.ContainsFunc(value, func(r rune) bool { return r >= 0x7f })
			switch {
			case !httpguts.ValidHeaderFieldName(name):
				return fmt.Errorf("%q is no name of a header", name)
			case !httpguts.ValidHeaderFieldValue(value):
				return fmt.Errorf("the header %s has a line end or another control character in it", name)
			case isSecret && !isASCII:
				return fmt.Errorf("the header %s has a key in it that is not all ASCII", name)
			}
		}
	}
	return nil
}
