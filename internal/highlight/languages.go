package highlight

import (
	"slices"
	"strings"
	"sync"
)

// language has the rules of one language.
type language struct {
	names      []string // its name, aliases, and extensions and names of files
	keywords   map[string]bool
	delimiters []delimiter // of which the first that fits counts

	ignoreCase bool   // keywords are written in capital letters here, and in any in the code
	dashes     bool   // words have dashes
	hashWords  bool   // a hash begins a word, as in #include
	colonKeys  bool   // a string before a colon is a key
	keys       string // behind the name at the beginning of a line that is a key
	heading    bool   // a hash begins a heading
	sections   bool   // a line that begins with a bracket is the title of a section
	markup     bool   // all but what stands within tags is text
}

// hasBlockComment reports whether the language has comments of several lines with an asterisk before each.
func (l *language) hasBlockComment() bool {
	return slices.ContainsFunc(l.delimiters, func(d delimiter) bool { return d.from == "/*" })
}

// delimiter is how a comment or a string begins and ends.
type delimiter struct {
	from, to   string // to is empty where it ends with the line
	kind       Kind
	isRaw      bool // a backslash is a backslash
	isLong     bool // it may end on a later line
	isChar     bool // it has one character
	inTag      bool // only within a tag
	afterBlank bool // only at the beginning of a word
}

// end returns where the text that began before from ends. ok is false where it does not end on the line.
func (d *delimiter) end(line string, from int) (end int, ok bool) {
	if d.to == "" {
		return len(line), true
	}
	for i := from; i < len(line); i++ {
		switch {
		case line[i] == '\\' && !d.isRaw:
			i++
		case line[i] == d.to[0] && strings.HasPrefix(line[i:], d.to):
			return i + len(d.to), true
		}
	}
	return len(line), false
}

// The delimiters that languages share.
var (
	slashes = delimiter{from: "//", kind: Comment}
	hash    = delimiter{from: "#", kind: Comment, afterBlank: true}
	block   = delimiter{from: "/*", to: "*/", kind: Comment, isRaw: true, isLong: true}
	double  = delimiter{from: `"`, to: `"`, kind: String}
	single  = delimiter{from: "'", to: "'", kind: String}
	char    = delimiter{from: "'", to: "'", kind: String, isChar: true}
	ticks   = delimiter{from: "`", to: "`", kind: String, isLong: true}
	triple  = delimiter{from: `"""`, to: `"""`, kind: String, isLong: true}
	markup  = delimiter{from: "<!--", to: "-->", kind: Comment, isRaw: true, isLong: true}
)

// cLike returns the delimiters of languages with comments as in C, behind those of their own.
func cLike(own ...delimiter) []delimiter { return append(own, slashes, block, double, char) }

func words(s string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		all[w] = true
	}
	return all
}

// byName returns all languages by their names. They are made when code is first coloured.
var byName = sync.OnceValue(func() map[string]*language {
	all := map[string]*language{}
	for _, l := range languages() {
		for _, name := range l.names {
			all[name] = &l
		}
	}
	return all
})

const (
	cWords = `auto break case char const continue default do double else enum extern float for goto if inline int long
		register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
		_Bool bool true false NULL size_t #include #define #undef #if #ifdef #ifndef #elif #else #endif #pragma #error `
	scriptWords = `as async await break case catch class const continue debugger default delete do else export extends
		false finally for from function get if import in instanceof let new null of return set static super switch this
		throw true try typeof undefined var void while with yield `
)

func languages() []language {
	return []language{
		{names: []string{"go", "golang"}, keywords: words(`break case chan const continue default defer else fallthrough
			false for func go goto if import interface iota map nil package range return select struct switch true type
			var`), delimiters: cLike(delimiter{from: "`", to: "`", kind: String, isRaw: true, isLong: true})},
		{names: []string{"python", "py", "python3", "pyi", "starlark", "bzl"}, keywords: words(`False None True and as
			assert async await break case class continue def del elif else except finally for from global if import in
			is lambda match nonlocal not or pass raise return self try while with yield`),
			delimiters: []delimiter{triple, {from: "'''", to: "'''", kind: String, isLong: true}, double, single,
				{from: "#", kind: Comment}}},
		{names: []string{"javascript", "js", "mjs", "cjs", "jsx", "node"}, keywords: words(scriptWords),
			delimiters: []delimiter{slashes, block, double, single, ticks}},
		{names: []string{"typescript", "ts", "mts", "cts", "tsx"}, keywords: words(scriptWords + `abstract any boolean
			declare enum implements infer interface is keyof namespace never number object private protected public
			readonly satisfies string type unknown`), delimiters: []delimiter{slashes, block, double, single, ticks}},
		{names: []string{"java"}, keywords: words(`abstract assert boolean break byte case catch char class const
			continue default do double else enum extends false final finally float for if implements import instanceof
			int interface long native new null package permits private protected public record return sealed short
			static strictfp super switch synchronized this throw throws transient true try var void volatile while
			yield`), delimiters: cLike(triple)},
		{names: []string{"kotlin", "kt", "kts"}, keywords: words(`abstract as break by catch class companion const
			constructor continue data do else enum false final finally for fun if import in inline interface internal
			is lateinit null object open operator out override package private protected public return sealed super
			suspend this throw true try typealias val var when where while`), delimiters: cLike(triple)},
		{names: []string{"swift"}, keywords: words(`actor any as associatedtype async await break case catch class
			continue default defer deinit do else enum extension fallthrough false fileprivate for func guard if import
			in init inout internal is let mutating nil open operator override private protocol public repeat rethrows
			return self Self some static struct subscript super switch throw throws true try typealias var where
			while`), delimiters: cLike(triple)},
		{names: []string{"c", "h"}, keywords: words(cWords), hashWords: true, delimiters: cLike()},
		{names: []string{"c++", "cpp", "cc", "cxx", "hpp", "hh", "hxx", "objc", "m", "mm"}, hashWords: true,
			keywords: words(cWords + `alignas alignof and catch class concept const_cast consteval constexpr constinit
				co_await co_return co_yield decltype delete dynamic_cast explicit export final friend module mutable
				namespace new noexcept not nullptr operator or override private protected public reinterpret_cast
				requires static_assert static_cast template this thread_local throw try typeid typename using virtual
				wchar_t`), delimiters: cLike()},
		{names: []string{"c#", "csharp", "cs"}, keywords: words(`abstract as async await base bool break byte case catch
			char checked class const continue decimal default delegate do double else enum event explicit extern false
			finally fixed float for foreach get goto if implicit in init int interface internal is lock long namespace
			new null object operator out override params private protected public readonly record ref required return
			sbyte sealed set short sizeof stackalloc static string struct switch this throw true try typeof uint ulong
			unchecked unsafe ushort using var virtual void volatile when where while with yield`),
			delimiters: cLike(triple)},
		{names: []string{"rust", "rs"}, keywords: words(`as async await break const continue crate dyn else enum extern
			false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true
			type union unsafe use where while`), delimiters: cLike()},
		{names: []string{"ruby", "rb", "rake", "gemfile", "rakefile"}, keywords: words(`BEGIN END alias and
			attr_accessor attr_reader begin break case class def defined? do else elsif end ensure extend false for
			if in include module next nil not or private protected public raise redo require require_relative rescue
			retry return self super then true undef unless until when while yield`),
			delimiters: []delimiter{hash, double, single}},
		{names: []string{"php"}, keywords: words(`abstract and array as break callable case catch class clone const
			continue declare default do echo else elseif empty enum extends false final finally fn for foreach function
			global if implements include include_once instanceof interface isset list match namespace new null or print
			private protected public readonly require require_once return self static switch throw trait true try unset
			use var while yield`), delimiters: []delimiter{slashes, block, hash, double, single}},
		{names: []string{"bash", "sh", "shell", "zsh", "ksh", "console", "shellscript", "bats", "bashrc", "zshrc",
			"profile"}, dashes: true,
			keywords: words(`case do done elif else esac export fi for function if in local readonly return select set
				source then trap unset until while exit cd echo shift`), delimiters: []delimiter{hash, double,
				{from: "'", to: "'", kind: String, isRaw: true}}},
		{names: []string{"sql", "psql", "mysql", "postgresql", "sqlite", "plpgsql"}, ignoreCase: true,
			keywords: words(`ADD ALL ALTER ANALYZE AND ANY AS ASC BEGIN BETWEEN BIGINT BOOLEAN BY CASCADE CASE CAST CHAR
				CHECK COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS DATABASE DATE DECLARE DEFAULT DELETE DESC DISTINCT
				DO DROP ELSE END EXCEPT EXISTS EXPLAIN FALSE FOREIGN FROM FULL FUNCTION GRANT GROUP HAVING IF IN INDEX
				INNER INSERT INT INTEGER INTERSECT INTO IS JOIN JSON JSONB KEY LEFT LIKE LIMIT NOT NULL NUMERIC OFFSET
				ON OR ORDER OUTER OVER PARTITION PRIMARY REFERENCES RETURNING RETURNS REVOKE RIGHT ROLLBACK ROW SELECT
				SERIAL SET TABLE TEMPORARY TEXT THEN TIMESTAMP TO TRANSACTION TRIGGER TRUE TRUNCATE UNION UNIQUE UPDATE
				USING VALUES VARCHAR VIEW WHEN WHERE WITH`), delimiters: []delimiter{{from: "--", kind: Comment}, block,
				{from: "'", to: "'", kind: String, isRaw: true}, {from: `"`, to: `"`, kind: String, isRaw: true}}},
		{names: []string{"json", "jsonc", "json5", "jsonl", "geojson"}, keywords: words("true false null"),
			colonKeys: true, delimiters: []delimiter{slashes, block, double}},
		{names: []string{"yaml", "yml"}, keywords: words("true false null yes no on off"), keys: ":", dashes: true,
			delimiters: []delimiter{hash, double, {from: "'", to: "'", kind: String, isRaw: true, afterBlank: true}}},
		{names: []string{"toml", "ini", "conf", "cfg", "editorconfig", "properties"}, keywords: words("true false"),
			keys: "=", sections: true, dashes: true, delimiters: []delimiter{hash, {from: ";", kind: Comment,
				afterBlank: true}, triple, double, {from: "'", to: "'", kind: String, isRaw: true}}},
		{names: []string{"html", "htm", "xhtml", "vue", "svelte", "xml", "svg", "xsd", "xsl", "plist", "csproj", "pom"},
			markup: true, delimiters: []delimiter{markup, {from: `"`, to: `"`, kind: String, isRaw: true, inTag: true},
				{from: "'", to: "'", kind: String, isRaw: true, inTag: true}}},
		{names: []string{"css", "scss", "less"}, keywords: words(`@media @import @font-face @keyframes @supports @layer
			@charset @page @container @property @include @mixin @use @extend`), keys: ":", dashes: true,
			delimiters: []delimiter{block, double, single}},
		{names: []string{"markdown", "md", "mkd"}, heading: true, delimiters: []delimiter{
			{from: "```", to: "```", kind: String, isRaw: true, isLong: true}, markup,
			{from: "`", to: "`", kind: String, isRaw: true}}},
		{names: []string{"dockerfile", "docker", "containerfile"}, ignoreCase: true, dashes: true, keywords: words(`ADD
			ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL STOPSIGNAL USER
			VOLUME WORKDIR`), delimiters: []delimiter{hash, double, single}},
		{names: []string{"make", "makefile", "mk", "mak", "gnumakefile"}, keys: ":", dashes: true, keywords: words(`
				define else endef endif export ifdef ifeq ifndef ifneq include override unexport`),
			delimiters: []delimiter{hash, double, single}},
	}
}
