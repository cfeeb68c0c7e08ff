package state

import (
	"encoding/json"
	"fmt"

	"muster"
)

// JSON returns Decode and Encode for items whose JSON is their document. name is what errors call an item, with %s for
// its key, such as "the request %s". setKey sets the item's own copy of the key: the key of the document counts,
// whatever the document says.
func JSON[T any](name string, setKey func(item *T, key string)) (
	decode func(key string, data []byte) (T, error), encode func(key string, item T) ([]byte, error),
) {
	decode = func(key string, data []byte) (item T, err error) {
		if err := json.Unmarshal(data, &item); err != nil {
			return item, muster.Errorf(muster.Corrupt, "%s cannot be read: %w", fmt.Sprintf(name, key), err)
		}
		setKey(&item, key)
		return item, nil
	}
	encode = func(key string, item T) ([]byte, error) {
		data, err := muster.Encode(item)
		if err != nil {
			return nil, muster.Errorf(muster.Invalid, "%s cannot be written: %w", fmt.Sprintf(name, key), err)
		}
		return data, nil
	}
	return decode, encode
}
