// Package require ends a test at a failure that leaves the rest of it without sense.
package require

// T is what a test and a property of rapid have in common.
type T interface {
	Helper()
	Fatal(args ...any)
}

// NoError ends the test unless err is nil.
func NoError(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Value is NoError for a call with a value: require.Value(os.ReadFile(name))(t).
func Value[V any](v V, err error) func(T) V {
	return func(t T) V {
		t.Helper()
		NoError(t, err)
		return v
	}
}
