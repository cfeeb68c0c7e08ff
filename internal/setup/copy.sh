# Copies what a set-up has made: sh copy.sh keep|put|remove TO FILES BYTES ./PATH...
#
# keep copies the paths from the working directory, a checkout, into the store. It refuses more files or bytes than are
# named, and what is no file, directory or link. Its last line is: FILES BYTES shared|bound. What is bound names the
# path of its checkout, and works there only.
# put copies them from the store into a checkout or a lane.
# remove removes them from TO. Neither follows a link: put and remove exit with 3 where a link is on the way to a path,
# and put also where something is at one.
set -eu
export LC_ALL=C
mode=$1 to=$2 most_files=$3 most_bytes=$4
shift 4

fail() {
	echo "$1"
	exit 1
}

# is_bound looks for the path of the checkout, but not in what builds leave beside their products: nothing reads that
# later.
is_bound() {
	find "$@" -name pyvenv.cfg
	find "$@" -type l -exec ls -ld {} + | grep -F -e "-> $PWD" || true
	find "$@" -type f -size -16385 ! -path '*/.cache/*' ! -name '*.map' ! -name '*.d' ! -name '*.o' ! -name '*.mk' \
		! -name '*.log' ! -name '*.tsbuildinfo' ! -name '*.gypi' ! -name Makefile ! -name .modules.yaml \
		! -name '.pnpm-workspace-state*' -exec grep -lF -e "$PWD" {} + || true
}

case $mode in
keep)
	odd=$(find "$@" ! -type f ! -type d ! -type l -print | head -n 1)
	[ -z "$odd" ] || fail "$odd is neither a file nor a directory nor a link"
	files=$(find "$@" -print0 | tr -dc '\000' | wc -c)
	[ "$files" -le "$most_files" ] || fail "it has more than $most_files files"
	# The length of a file, also where most of it is a hole. GNU stat and that of BSD have different options.
	size='stat -c %s'
	$size / >/dev/null 2>&1 || size='stat -f %z'
	bytes=$(find "$@" -type f -exec $size {} + | awk '{ n += $1 } END { printf "%.0f", n }')
	[ "$bytes" -le "$most_bytes" ] || fail "it has more than $((most_bytes >> 30)) GB"
	;;
*)
	for root; do
		[ $mode = remove ] || { [ ! -e "$to/$root" ] && [ ! -L "$to/$root" ]; } || exit 3
		up=${root%/*}
		while [ "$up" != . ]; do
			[ ! -L "$to/$up" ] || exit 3
			up=${up%/*}
		done
	done
	;;
esac

if [ $mode = remove ]; then
	cd "$to"
	find "$@" -type d ! -perm -700 -exec chmod u+rwx {} \; 2>/dev/null || true # of paths that are not there
	exec rm -rf "$@"
fi

# With GNU cp this is -a without owners and lists of access: each of these takes its time under Landlock, or is refused.
# Files share their blocks where the file system can do that.
options=-RPp
if cp --help 2>&1 | grep -q -e --reflink; then
	options='-dR --preserve=links,timestamps --reflink=auto'
fi
for root; do
	up=$to/${root%/*}
	[ -d "$up" ] || mkdir -p "$up"
	(umask 0 && cp $options "$root" "$up/")
done

if [ $mode = keep ]; then
	sync -f "$to" 2>/dev/null || sync # the copy is on the disk before the entry gets its name
	kind=shared
	[ -z "$(is_bound "$@" | head -n 1)" ] || kind=bound
	echo "$((files)) $bytes $kind"
fi
