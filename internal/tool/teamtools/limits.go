package teamtools

import (
	"cmp"
	"reflect"
	"strings"

	"muster"
)

// The limits of what a call may say. Everything of it is kept in records that all members read again and again.
const (
	maxText = 1000 // bytes of a text that is not in maxTexts, such as a name
	maxList = 100  // items of a list
	maxOpen = 2000 // open tasks on the board, above which the lead adds none
)

// maxTexts has how many bytes the texts may have that are meant to be long, by the names of their fields.
var maxTexts = map[string]int{
	"content": 64 << 10, "description": 64 << 10, "plan": 64 << 10, "prompt": 64 << 10, "command": 64 << 10,
	"summary": 16 << 10, "reason": 4 << 10, "feedback": 4 << 10,
}

// checkTexts refuses an input with a text or a list that is too long. in is a struct; its fields are looked at, not
// what lies in them.
func checkTexts(in any) error {
	v := reflect.ValueOf(in)
	for i := range v.NumField() {
		of := v.Type().Field(i)
		name, _, _ := strings.Cut(of.Tag.Get("json"), ",")
		most := cmp.Or(maxTexts[name], maxText)
		field := reflect.Indirect(v.Field(i))
		switch field.Kind() {
		case reflect.String:
			if n := field.Len(); n > most {
				return muster.Errorf(muster.Invalid,
					"%s has %d bytes, and may have %d: say less, or write it to a file and name that", name, n, most)
			}
		case reflect.Slice:
			if n := field.Len(); n > maxList {
				return muster.Errorf(muster.Invalid, "%s has %d items, and may have %d", name, n, maxList)
			}
		}
	}
	return nil
}
