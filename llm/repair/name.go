package repair

import (
	"cmp"
	"slices"
	"strings"

	"muster/internal/editdist"
)

// others are the names that tools have in other programs, by the name of the tool that does the same here. They are
// written as Fold returns them.
var others = map[string][]string{
	"bash": {"shell", "execute", "executecommand", "runcommand", "runshellcommand", "runterminalcmd",
		"runinterminal", "runbash", "terminal", "exec", "execcommand", "shellcommand", "localshell", "bashtool"},
	"read_file": {"read", "view", "viewfile", "openfile", "fileread", "readfiletool", "readtool", "cat", "ls",
		"listdir", "listdirectory", "listfiles"},
	"write_file": {"write", "createfile", "filewrite", "writetofile", "savefile", "writetool"},
	"edit_file": {"edit", "strreplace", "replaceinfile", "fileedit", "multiedit", "edittool", "searchreplace",
		"replacestringinfile", "multireplacestringinfile"},
	"grep":             {"search", "searchfiles", "grepsearch", "searchfilecontent", "ripgrep", "greptool", "rg"},
	"glob":             {"find", "findfiles", "filesearch", "globtool", "globfiles", "globfilesearch"},
	"todo":             {"todowrite", "updateplan", "writetodos", "todolist", "updatetodolist"},
	"subagent":         {"task", "agent", "dispatchagent", "delegate", "newtask"},
	"task_create":      {"taskcreate", "createtask", "addtask", "taskadd"},
	"task_update":      {"taskupdate", "updatetask"},
	"task_list":        {"tasklist", "listtasks", "gettasks"},
	"task_get":         {"taskget", "gettask", "showtask"},
	"claim_task":       {"claimtask", "taskclaim"},
	"complete_task":    {"completetask", "taskcomplete", "finishtask"},
	"release_task":     {"taskrelease"},
	"send_message":     {"sendmessage", "sendmail", "messageteammate", "mailsend"},
	"broadcast":        {"broadcastmessage", "sendbroadcast"},
	"list_teammates":   {"listteam", "teamlist", "teammates", "listteammembers", "listmembers"},
	"spawn_teammate":   {"spawnteammate", "createteammate", "spawnagent", "spawn"},
	"read_inbox":       {"inbox", "readmail", "checkinbox", "getmessages"},
	"check_background": {"bashoutput", "taskoutput", "checkjob"},
	"stop_background":  {"killshell", "killbash", "killjob", "taskstop"},
	"submit_plan":      {"exitplanmode", "planapproval"},
	"request_shutdown": {"shutdownrequest", "shutdownteammate"},
	"respond_shutdown": {"shutdownresponse"},
}

// prefixes are what some models and servers put before the names of tools.
var prefixes = []string{"functions.", "functions:", "function.", "tools.", "tool.", "default_api.", "default_api:",
	"muster.", "muster:", "mcp__muster__", "mcp_muster_", "multi_tool_use."}

// Name returns which of the tools is meant by name, or "". That is the tool of that very name, or the only one whose
// name differs in case and separators, or in what models and servers add around it, or that has this name elsewhere.
func Name(name string, tools []string) string {
	if slices.Contains(tools, name) {
		return name
	}
	bare := strings.Trim(name, " \t\r\n\"'`()")
	for _, token := range []string{"<|", "</"} { // what the server should have taken out
		bare, _, _ = strings.Cut(bare, token)
	}
	plain := bare
	for _, p := range prefixes {
		if len(plain) > len(p) && strings.EqualFold(plain[:len(p)], p) {
			plain = plain[len(p):]
			break
		}
	}
	// Kimi counts its calls: functions.bash:0. It also writes functions_bash_0 and functionsbash0.
	if at := strings.LastIndexByte(plain, ':'); at > 0 && strings.Trim(plain[at+1:], "0123456789") == "" {
		plain = plain[:at]
	}
	counted, _ := strings.CutPrefix(Fold(bare), "functions")
	if counted == Fold(bare) {
		counted = ""
	}
	once := bare[:len(bare)/2]
	if once+once != bare {
		once = ""
	}
	for _, spelling := range []string{bare, plain, strings.TrimRight(counted, "0123456789"), once} {
		if found := match(spelling, tools); found != "" {
			return found
		}
	}
	return ""
}

// match returns the only tool that is called name but for case and separators, here or elsewhere. A tool's own name
// goes before the names that others have elsewhere.
func match(name string, tools []string) string {
	folded := Fold(name)
	var own, other []string
	for _, t := range tools {
		if Fold(t) == folded {
			own = append(own, t)
		} else if slices.Contains(others[t], folded) {
			other = append(other, t)
		}
	}
	if len(own) == 0 {
		own = other
	}
	if len(own) != 1 {
		return ""
	}
	return own[0]
}

// Fold returns a name without case and separators, as names of tools and fields are compared.
func Fold(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(name))
}

// Nearest returns the tools with the names most like name first, here or elsewhere: codebase_search is most like grep,
// which others call search.
func Nearest(name string, tools []string) []string {
	const minContained = 4 // letters of another name: "ls" is in "tools"
	folded := Fold(name)
	rank := func(tool string) int {
		t := Fold(tool)
		if folded != "" && (strings.Contains(t, folded) || strings.Contains(folded, t)) {
			return 0
		}
		nearest := editdist.Distance(folded, t)
		for _, other := range others[tool] {
			if len(other) >= minContained && strings.Contains(folded, other) ||
				len(folded) >= minContained && strings.Contains(other, folded) {
				return 1
			}
			nearest = min(nearest, editdist.Distance(folded, other))
		}
		return nearest
	}
	return slices.SortedStableFunc(slices.Values(tools), func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
}
