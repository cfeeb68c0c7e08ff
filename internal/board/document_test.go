package board

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"muster"
)

// The fast path reads what encodeTask writes: without that it would save nothing.
func TestDecodeOwnReadsOwnDocuments(t *testing.T) {
	hash := strings.Repeat("0123456789", 4)
	documents := [][]byte{[]byte(`{"status": "pending", "dependsOn": [], "blocks": [7]}`)}
	for _, task := range []muster.Task{
		{ID: 17, Subject: "Report it", Status: muster.Pending, Priority: 2, Description: "To the end.\n\n\"unclosed\"",
			BlockedBy: []muster.TaskID{3, 4}, DependsOn: []muster.TaskID{1, 3, 4}, CreatedBy: muster.Lead,
			CreatedAt: 1763801234.123456, UpdatedAt: 1763801299.5},
		{ID: 18, Subject: "Write the guide", Status: muster.Completed, Owner: "alice", DependsOn: []muster.TaskID{1},
			Worktree: "task-18", Base: hash, ClaimedAt: 1763801234.1, ClaimSource: muster.SourceAuto, Fence: 2,
			Landed:      &muster.Landed{Commit: hash, Receipt: muster.ReceiptGreen, Check: "go test ./...", Seconds: 3.25},
			CompletedBy: "alice", Result: "The guide is written."},
	} {
		data, err := encodeTask("", task)
		if documents = append(documents, data); err != nil {
			t.Fatal(err)
		}
	}
	for _, data := range documents {
		if _, ok := decodeOwn(data); !ok {
			t.Errorf("not read: %s", data)
		}
	}
}

// Whatever a document has, decodeTask reads it as encoding/json does, with the same error.
func TestDecodeTaskAgreesWithEncodingJSON(t *testing.T) {
	names := append(fieldNames(), "ID", "Status", "blocked_by", "required_role", "Extra", "-", "other", "stat\\u0075s", "\xff")
	values := []string{"null", "0", "-0", "7", "7.0", "1e2", "1763801234.123456", "1e999", "99999999999999999999", "true",
		"false", `""`, `"pending"`, `"completed"`, `"a\nb"`, `"\u00e9\ud83d\ude00"`, `"\ud800"`, "\"\xff\"", "\"\n\"", `"é😀\/"`,
		"[]", "[1,2]", "[2,1,2]", "[null]", `["tell"]`, `["1"]`, "{}", `{"commit":"a","receipt":"ok","seconds":1.5}`,
		`{"Commit":"a"}`, `{"commit":"a","commit":"b"}`, `{"head":"a","onto":null}`, `{"x":[{"y":1}]}`, "01", "tru", "[1,]", ""}
	between := []string{"", " ", "\n\t", "\r\n", "\v"}
	rapid.Check(t, func(r *rapid.T) {
		var b strings.Builder
		b.WriteString(rapid.SampledFrom([]string{"{", "{", "{", "{ ", "", "[", "\ufeff{"}).Draw(r, "begin"))
		isOwn := rapid.Bool().Draw(r, "own") // most random documents are no task: these have what the fast path asks for
		if isOwn {
			b.WriteString(`"status":"pending","dependsOn":[1],`)
		}
		for i := range rapid.IntRange(0, 6).Draw(r, "fields") {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, `%s"%s":%s`, rapid.SampledFrom(between).Draw(r, "blank"),
				rapid.SampledFrom(names).Draw(r, "name"), rapid.SampledFrom(values).Draw(r, "value"))
		}
		b.WriteString(rapid.SampledFrom([]string{"}", "}", "}", "}\n", "", "}}", "} x"}).Draw(r, "end"))
		checkDecode(r, b.String())
	})
	for _, document := range []string{"null", "7", `"x"`, "", "{}", `{"status":""}`, `{"status":null,"dependsOn":[]}`} {
		checkDecode(t, document)
	}
}

// checkDecode compares decodeTask with encoding/json for one document.
func checkDecode(t interface{ Fatalf(string, ...any) }, document string) {
	var want muster.Task
	wantErr := want.UnmarshalJSON([]byte(document))
	want.ID, want.Blocks = 5, nil
	got, err := decodeTask("5", []byte(document))
	switch {
	case !utf8.ValidString(document):
		if err == nil {
			t.Fatalf("%q is read, though it is not UTF-8", document)
		}
	case wantErr != nil:
		if err == nil || !strings.HasSuffix(err.Error(), muster.PlainText(wantErr)) {
			t.Fatalf("%s: error %v, want %v", document, err, wantErr)
		}
	case err != nil:
		t.Fatalf("%s: %v", document, err)
	case !reflect.DeepEqual(got, want):
		t.Fatalf("%s:\n got %#v\nwant %#v", document, got, want)
	}
}

// fieldNames returns the names of a task's fields in its document.
func fieldNames() (names []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[muster.Task]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
