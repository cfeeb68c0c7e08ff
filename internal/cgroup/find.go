//go:build linux

package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// wanted are the controllers that limit something. That of the processors needs no limit: each group counts as much as
// any other.
var wanted = []string{"pids", "memory", "cpu"}

// findHierarchies returns the hierarchies in which this process may make groups.
func findHierarchies() (all []hierarchy, err error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	memberships, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	return find(string(mounts), string(memberships), canWrite)
}

// canWrite reports whether this process may change a file or directory.
func canWrite(path string) bool { return unix.Access(path, unix.W_OK) == nil }

// find is findHierarchies for what two files of /proc/self say.
func find(mounts, memberships string, canWrite func(path string) bool) (all []hierarchy, err error) {
	missing := slices.Clone(wanted)
	add := func(h hierarchy) {
		if len(h.controllers) > 0 {
			all = append(all, h)
			missing = slices.DeleteFunc(missing, h.has)
		}
	}
	for _, unified := range []bool{true, false} { // a controller is in one version only
		for line := range strings.Lines(mounts) {
			m, ok := parseMount(line)
			if !ok || m.unified != unified {
				continue
			}
			own := m.directory(memberships)
			if own == "" {
				continue
			}
			if unified {
				add(delegated(m.at, own, missing, canWrite))
				continue
			}
			if canWrite(own) && canWrite(filepath.Join(own, "tasks")) {
				add(hierarchy{parent: own, own: own, controllers: both(missing, m.options)})
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no control group here can be changed by this user")
	}
	return all, nil
}

// delegated returns the nearest directory above a group in which groups with controllers can be made. The group itself
// is none: one that has processes can have no groups with controllers below it. A process is started in a group only by
// who may write to cgroup.procs of the directory above both.
func delegated(root, own string, missing []string, canWrite func(path string) bool) hierarchy {
	for dir := own; strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
		text, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control")) // what cannot be read has none
		has := strings.Fields(string(text))
		if !canWrite(dir) || !canWrite(filepath.Join(dir, "cgroup.procs")) || !slices.Contains(has, "pids") {
			continue
		}
		return hierarchy{unified: true, parent: dir, own: own, controllers: both(missing, has)}
	}
	return hierarchy{}
}

// both returns those of a list that are in another one, too.
func both(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !slices.Contains(other, s) })
}

// mount is a mounted hierarchy.
type mount struct {
	unified  bool
	root, at string   // the directory of the hierarchy that is mounted, and where
	options  []string // with the controllers of version 1
}

// parseMount reads a line of mountinfo; ok is false when it is no hierarchy of groups. See proc(5): ID PARENT DEVICE
// ROOT PLACE OPTIONS TAGS... - TYPE SOURCE OPTIONS.
func parseMount(line string) (m mount, ok bool) {
	before, after, _ := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if len(left) < 6 || len(right) < 3 || right[0] != "cgroup" && right[0] != "cgroup2" {
		return m, false
	}
	return mount{right[0] == "cgroup2", left[3], left[4], strings.Split(right[2], ",")}, true
}

// directory returns where the group of this process in the hierarchy is, by the lines of /proc/self/cgroup, which are
// ID:CONTROLLERS:PATH; "" where it cannot be seen.
func (m mount) directory(memberships string) string {
	for line := range strings.Lines(memberships) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		mine := fields[0] == "0" && fields[1] == ""
		if !m.unified {
			mine = fields[1] != "" && slices.Contains(m.options, strings.Split(fields[1], ",")[0])
		}
		if !mine {
			continue
		}
		if m.root == "/" {
			return filepath.Join(m.at, fields[2])
		}
		// A container has a part of the hierarchy mounted.
		if rel, ok := strings.CutPrefix(fields[2], m.root); ok {
			return filepath.Join(m.at, rel)
		}
		return ""
	}
	return ""
}
