package code

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// nameFilter says by their names which files are searched: those that a pattern of each list in only accepts and no
// pattern of never.
type nameFilter struct {
	only  [][]string
	never []string
}

// newNameFilter returns the filter that the fields glob and type of a call mean. As with other programs, glob may have
// several patterns, and one after "!" excludes files. problem says why a pattern cannot be used.
func newNameFilter(glob, fileType string) (f nameFilter, problem string) {
	if problem = checkGlob(glob); problem != "" {
		return f, "glob: " + problem
	}
	var wanted []string
	for _, pattern := range splitPatterns(glob) {
		pattern, isExcluded := strings.CutPrefix(pattern, "!")
		pattern = strings.TrimPrefix(filepath.ToSlash(pattern), "./")
		if strings.HasSuffix(pattern, "/") {
			pattern += "**"
		}
		switch {
		case !doublestar.ValidatePattern(pattern):
			return f, "glob \"" + pattern + "\" is not a pattern: use *, **, ?, [a-z] and {a,b}."
		case isExcluded:
			f.never = append(f.never, pattern)
		default:
			wanted = append(wanted, pattern)
		}
	}
	if len(wanted) > 0 {
		f.only = append(f.only, wanted)
	}
	types, problem := typePatterns(fileType)
	if len(types) > 0 {
		f.only = append(f.only, types)
	}
	return f, problem
}

// splitPatterns splits a list of patterns at commas and spaces outside of braces and brackets. A single name with
// spaces cannot be told from a list, so a list of spaces needs a wildcard or a "!" in each of its patterns.
func splitPatterns(glob string) (patterns []string) {
	depth, begin := 0, 0
	for i, c := range glob {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				patterns = append(patterns, glob[begin:i])
				begin = i + 1
			}
		}
	}
	patterns = append(patterns, glob[begin:])
	var all []string
	for _, p := range patterns {
		p = strings.TrimSpace(p)
		fields := strings.Fields(p)
		isList := !slices.ContainsFunc(fields, func(s string) bool { return !strings.ContainsAny(s, "*!") })
		switch {
		case p == "":
		case isList:
			all = append(all, fields...)
		default:
			all = append(all, p)
		}
	}
	return all
}

// accepts reports whether a file is searched. name is its path from where the search begins, shown its path from the
// working directory.
func (f nameFilter) accepts(name, shown string) bool {
	for _, patterns := range f.only {
		if !matchesAny(patterns, name, shown) {
			return false
		}
	}
	return !matchesAny(f.never, name, shown)
}

// matchesAny compares a pattern without a slash with the last element of the path, and any other with either path.
func matchesAny(patterns []string, name, shown string) bool {
	base := path.Base(shown)
	return slices.ContainsFunc(patterns, func(p string) bool {
		if !strings.Contains(p, "/") {
			return doublestar.MatchUnvalidated(p, base)
		}
		return doublestar.MatchUnvalidated(p, name) || doublestar.MatchUnvalidated(p, shown)
	})
}

// fileTypes are the types whose files have other names than *.TYPE. The names are those that ripgrep knows, and the
// full names of languages.
var fileTypes = map[string]string{
	"bash": "sh", "c": "*.[ch]", "clojure": "*.clj,*.cljc,*.cljs,*.cljx", "cmake": "*.cmake,CMakeLists.txt",
	"config": "*.cfg,*.conf,*.config,*.ini", "cpp": "*.[ch]pp,*.[ch]xx,*.cc,*.hh,*.inl,*.[CHh]", "c++": "cpp",
	"csharp": "cs", "css": "*.css,*.scss", "docker": "*Dockerfile*", "elixir": "*.ex,*.exs,*.eex",
	"erlang": "*.erl,*.hrl", "golang": "go", "groovy": "*.groovy,*.gradle", "h": "*.h,*.hpp",
	"haskell": "*.hs,*.hsc,*.lhs", "html": "*.html,*.htm,*.ejs", "javascript": "js",
	"js": "*.js,*.jsx,*.mjs,*.cjs,*.vue", "julia": "*.jl", "jupyter": "*.ipynb", "kotlin": "*.kt,*.kts",
	"make": "*.mk,*.mak,[Mm]akefile,GNUmakefile,[Mm]akefile.*", "makefile": "make", "markdown": "md",
	"md": "*.md,*.markdown,*.mdown,*.mkdn,*.mdx", "objc": "*.m,*.h", "ocaml": "*.ml,*.mli,*.mll,*.mly",
	"perl": "*.pl,*.pm,*.t", "php": "*.php,*.phtml,*.php[3457]", "protobuf": "proto", "py": "*.py,*.pyi",
	"python": "py", "rb": "ruby", "rs": "rust", "ruby": "*.rb,*.gemspec,Gemfile,Rakefile,config.ru",
	"rust": "*.rs", "sass": "*.sass,*.scss", "scala": "*.scala,*.sbt", "sh": "*.sh,*.bash,*.zsh,*.ksh,*.csh",
	"shell": "sh", "terraform": "tf", "ts": "*.ts,*.tsx,*.mts,*.cts", "typescript": "ts",
	"xml": "*.xml,*.xsd,*.xsl,*.xslt,*.dtd", "yaml": "*.yaml,*.yml", "yml": "yaml",
}

// typePatterns returns the patterns for files of a type, or of several after commas. A type that is not in the table is
// taken for the end of names.
func typePatterns(types string) (patterns []string, problem string) {
	for name := range strings.SplitSeq(types, ",") {
		name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "."))
		if name == "" {
			continue
		}
		list, ok := fileTypes[name]
		if other, isAlias := fileTypes[list]; isAlias {
			list = other
		} else if ok && !strings.ContainsAny(list, "*.") {
			list = "*." + list // an alias of a type that is not in the table
		}
		if !ok {
			if strings.ContainsAny(name, `*?[]{}/\! `) {
				return nil, "type is a name such as go, py or ts; a pattern such as *.go belongs in glob."
			}
			list = "*." + name
		}
		patterns = append(patterns, strings.Split(list, ",")...)
	}
	return patterns, ""
}
