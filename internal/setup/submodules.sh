# Fills the submodules of the working tree here from what the user has of them: sh submodules.sh MODULES GITDIR. MODULES
# has the git directories of the user's, and GITDIR is the git directory of the working tree, relative to it. Objects
# are borrowed, so nothing is copied but files. It prints the path of each submodule that stays empty.
set -u
export LC_ALL=C

# fill MODULES GITDIR PREFIX
fill() {
	[ -f .gitmodules ] && [ ! -L .gitmodules ] || return 0
	git config -f .gitmodules --name-only --get-regexp '^submodule\..*\.path$' | while IFS= read -r key; do
		name=${key#submodule.} name=${name%.path}
		path=$(git config -f .gitmodules "$key")
		link=$(git --literal-pathspecs ls-files -s -- "$path")
		case $link in 160000\ *) ;; *) continue ;; esac
		case /$name/ in */../*) continue ;; esac
		id=${link#* } id=${id%% *}
		[ ! -e "$path/.git" ] && [ "$(git config -f .gitmodules "submodule.$name.update")" != none ] || continue
		(one "$1/$name" "$2/modules/$name" "$path" "$id" "$3" </dev/null) || printf '%s%s\n' "$3" "$path"
	done
}

# one FROM GITDIR PATH COMMIT PREFIX fills one submodule, and those in it.
one() {
	[ -f "$1/HEAD" ] && [ ! -e "$2/HEAD" ] || return 1
	format=sha1
	[ ${#4} -eq 40 ] || format=sha256
	mkdir -p "$2" && git init -q --bare --template= --object-format=$format "$2" || return 1
	printf '%s\n' "$1/objects" >"$2/objects/info/alternates"
	for file in shallow packed-refs; do
		[ ! -f "$1/$file" ] || cp "$1/$file" "$2/$file"
	done
	cp -R "$1/refs/." "$2/refs/"
	# What the user gets later, git submodule update finds there, too. Submodules in this one may be relative to its URL.
	url=$(git config -f "$1/config" remote.origin.url) || url=$1
	git config -f "$2/config" remote.origin.url "$url"
	[ "$url" = "$1" ] || git config -f "$2/config" "url.$1.insteadOf" "$url"
	git config -f "$2/config" remote.origin.fetch '+refs/heads/*:refs/remotes/origin/*'
	git config -f "$2/config" protocol.file.allow always
	git config -f "$2/config" core.bare false
	printf '%s\n' "$4" >"$2/HEAD"
	up=$(printf %s "$3" | sed 's#[^/][^/]*#..#g')
	printf 'gitdir: %s\n' "$up/$2" >"$3/.git"
	git -C "$3" reset -q --hard || { rm -f "$3/.git"; return 1; }
	cd "$3" && fill "$1/modules" "$up/$2" "$5$3/"
} 2>/dev/null
fill "$1" "$2" ''
