package proc

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"muster/internal/redact"
)

// Environment returns what the commands of agents, checks and set-ups may see of env: the variables that programs and
// toolchains need, and those that pass names. All others are withheld, because what a variable is for cannot be told by
// its name alone, and commands that a model has written must find no key.
//
// A name in pass that ends in * stands for all variables that begin so. A variable whose name is that of a credential,
// or whose value holds a secret, is only passed if pass has its whole name. What would lead git to another repository
// and muster's own settings (MUSTER_*) are never passed.
func Environment(env, pass []string) []string {
	secrets := redact.New(redact.FromEnviron(env)...)
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		return !isPassed(name, value, pass, secrets)
	})
}

// WithVariables returns env with variables, each NAME=VALUE, in place of those of the same names. Which of two
// variables of one name a program gets is not defined.
func WithVariables(env []string, set ...string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(set, func(s string) bool { return isVariable(s, name) })
	})
	return append(env, set...)
}

// Variable returns the value of a variable. Of several the last counts, as in os/exec.
func Variable(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if isVariable(kv, name) {
			return kv[len(name)+1:]
		}
	}
	return ""
}

// isVariable reports whether kv sets the variable with the name. Windows tells no case apart.
func isVariable(kv, name string) bool {
	n, _, ok := strings.Cut(kv, "=")
	return ok && (n == name || runtime.GOOS == "windows" && strings.EqualFold(n, name))
}

// isPassed reports whether a variable reaches commands.
func isPassed(name, value string, pass []string, secrets *redact.Secrets) bool {
	upper := strings.ToUpper(name) // Windows tells no case apart, and proxies are written both ways
	switch {
	case strings.HasPrefix(upper, "MUSTER_"), slices.Contains(misleadsGit, upper):
		return false
	case slices.Contains(pass, name):
		return true
	case redact.IsCredential(name), secrets.Contains(value),
		slices.ContainsFunc(redact.InVariable(name, value), func(password string) bool {
			return password != "changeit" // the one that Java has for everybody's trust store
		}):
		return false
	}
	return matches(passedVariables(), upper) || matches(pass, name)
}

// matches reports whether list has the name, or a beginning of it with a * behind.
func matches(list []string, name string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		prefix, isPrefix := strings.CutSuffix(entry, "*")
		return entry == name || isPrefix && strings.HasPrefix(name, prefix)
	})
}

// misleadsGit are the variables that would lead git to another repository.
var misleadsGit = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
	"GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE", "GIT_CONFIG_PARAMETERS",
}

// passedVariables are the variables that commands see. docs/models-and-settings.md lists them for users; a test holds
// the two together. A * is any ending. Beginnings that are also those of credentials are written out: GOOGLE_* is not
// Go's, and BUNDLE_* holds the passwords of hosts.
var passedVariables = sync.OnceValue(func() []string {
	return strings.Fields(`
	PATH HOME USER LOGNAME SHELL LANG LANGUAGE LC_* LOCPATH TERM TERMINFO TERMINFO_DIRS COLORTERM NO_COLOR CLICOLOR
	CLICOLOR_FORCE FORCE_COLOR COLUMNS LINES TZ TZDIR TMPDIR TMP TEMP HOSTNAME PWD EMAIL CI CONTINUOUS_INTEGRATION
	GITHUB_ACTIONS GITLAB_CI CIRCLECI BUILDKITE TF_BUILD RUNNER_OS RUNNER_ARCH RUNNER_TEMP RUNNER_TOOL_CACHE
	AGENT_TOOLSDIRECTORY DISPLAY WAYLAND_DISPLAY XAUTHORITY WSL_* QT_* GTK_* GDK_* XDG_* SSH_AUTH_SOCK SSH_AGENT_PID
	GNUPGHOME GPG_TTY SOURCE_DATE_EPOCH DEBIAN_FRONTEND LOCALE_ARCHIVE SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS
	REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO GIT_SSL_CAPATH PIP_CERT AWS_CA_BUNDLE NIX_SSL_CERT_FILE
	SYSTEM_CERTIFICATE_PATH HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY

	GIT_AUTHOR_* GIT_COMMITTER_* GIT_EXEC_PATH GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM
	GIT_CEILING_DIRECTORIES GIT_SSH GIT_SSH_COMMAND GIT_TEMPLATE_DIR GIT_LFS_SKIP_SMUDGE

	GOARCH GOOS GOBIN GOCACHE GODEBUG GOENV GOEXE GOEXPERIMENT GOFIPS140 GOFLAGS GOINSECURE GOMODCACHE GONOPROXY
	GONOSUMDB GOPATH GOPRIVATE GOPROXY GOROOT GOSUMDB GOTELEMETRY GOTMPDIR GOTOOLCHAIN GOVCS GOWORK GO111MODULE
	GOMAXPROCS GOMEMLIMIT GOGC GOTRACEBACK GORACE GOCOVERDIR GOAMD64 GOARM GOARM64 GO386 GOMIPS GOMIPS64 GOPPC64
	GORISCV64 GOWASM GOAUTH GOCACHEPROG GOPACKAGESDRIVER GOLANG_VERSION GOLANGCI_LINT_CACHE CGO_* CARGO CARGO_* RUSTUP_*
	RUSTC RUSTC_* RUSTDOC RUSTFLAGS RUSTDOCFLAGS RUST_* SCCACHE_* OPENSSL_* PROTOC PROTOC_INCLUDE LIBCLANG_PATH
	LLVM_CONFIG BINDGEN_EXTRA_CLANG_ARGS NODE NODE_* NPM_CONFIG_* INIT_CWD N_PREFIX NODENV_* NVM_* FNM_* VOLTA_HOME
	PNPM_* YARN_* COREPACK_* BUN_* DENO_* TURBO_* TS_NODE_* ELECTRON_* HUSKY PLAYWRIGHT_* PUPPETEER_*
	CYPRESS_CACHE_FOLDER CHROME_BIN CHROME_PATH FIREFOX_BIN PYTHON* VIRTUAL_ENV VIRTUAL_ENV_PROMPT CONDA_* MAMBA_* PIP_*
	PIPX_* PIPENV_* POETRY_HOME POETRY_CACHE_DIR POETRY_CONFIG_DIR POETRY_VIRTUALENVS_* POETRY_INSTALLER_* WORKON_HOME
	PIXI_* RYE_* NOX_* MYPYPATH DJANGO_SETTINGS_MODULE FLASK_APP FLASK_ENV CUDA_* OMP_NUM_THREADS UV_* PYENV_* PDM_*
	HATCH_* TOX_* PYTEST_* COVERAGE_* JAVA_HOME JAVA_HOME_* JENV_* JDK_HOME JRE_HOME JAVA_OPTS JAVA_TOOL_OPTIONS
	JDK_JAVA_OPTIONS _JAVA_OPTIONS CLASSPATH GRADLE_* MAVEN_* M2 M2_HOME M3_HOME MVNW_* ANT_* COURSIER_* BAZELISK_*
	USE_BAZEL_VERSION SPRING_PROFILES_ACTIVE SBT_* SCALA_HOME KOTLIN_HOME SDKMAN_* ANDROID_* FLUTTER_ROOT PUB_CACHE
	DOTNET_* NUGET_* MSBUILD* ASPNETCORE_ENVIRONMENT CC CXX CPP LD AR AS NM RANLIB STRIP CFLAGS CXXFLAGS CPPFLAGS
	LDFLAGS LDLIBS MAKEFLAGS MAKELEVEL ARCH CROSS_COMPILE CC_* CXX_* CFLAGS_* CXXFLAGS_* ASAN_OPTIONS UBSAN_OPTIONS
	TSAN_OPTIONS LSAN_OPTIONS MSAN_OPTIONS LLVM_PROFILE_FILE CMAKE_* CTEST_* NINJA_* MESON_* CCACHE_* PKG_CONFIG*
	LD_LIBRARY_PATH LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH ACLOCAL_PATH DYLD_* SDKROOT DEVELOPER_DIR
	MACOSX_DEPLOYMENT_TARGET VCPKG_* CONAN_HOME CONAN_USER_HOME EMSDK ZIG_* HOMEBREW_* RUBYOPT RUBYLIB RUBY_*
	MY_RUBY_HOME RBENV_* RVM_* GEM_* BUNDLE_PATH BUNDLE_GEMFILE BUNDLE_WITHOUT BUNDLE_WITH BUNDLE_BIN BUNDLE_JOBS
	BUNDLE_FROZEN BUNDLE_DEPLOYMENT BUNDLE_APP_CONFIG BUNDLE_USER_HOME BUNDLER_VERSION APP_ENV RAILS_ENV RACK_ENV PHP_*
	PHPRC COMPOSER_* PERL5LIB PERL5OPT PERL_* PERLBREW_* LUA_PATH LUA_CPATH R_HOME R_LIBS R_LIBS_USER JULIA_DEPOT_PATH
	JULIA_PROJECT ERL_* ELIXIR_* MIX_* HEX_HOME REBAR_* STACK_ROOT CABAL_* GHCUP_* OPAM* SWIFT_* ASDF_* MISE_* NIX_PATH
	NIX_PROFILES NIX_STORE NIX_REMOTE NIX_BUILD_CORES NIX_CC NIX_BINTOOLS NIX_CFLAGS_* NIX_LDFLAGS* NIX_HARDENING_ENABLE
	NIX_ENFORCE_NO_NATIVE IN_NIX_SHELL DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG DOCKER_CERT_PATH DOCKER_TLS_VERIFY
	DOCKER_BUILDKIT DOCKER_DEFAULT_PLATFORM COMPOSE_* BUILDKIT_* TESTCONTAINERS_* CONTAINER_HOST

	SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT USERPROFILE USERNAME USERDOMAIN HOMEDRIVE HOMEPATH APPDATA
	LOCALAPPDATA PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) PROGRAMW6432 COMMONPROGRAMFILES COMMONPROGRAMFILES(X86)
	ALLUSERSPROFILE PUBLIC OS PROCESSOR_* NUMBER_OF_PROCESSORS MSYSTEM INCLUDE LIB LIBPATH VCINSTALLDIR VSINSTALLDIR
	WINDOWSSDKDIR`)
})

// FindOutside finds a program in the PATH of env, and returns its path, "" if there is none, and env with a PATH of the
// directories in which it may look for others. What lies in one of dirs is left out, also by its links, and so is what
// the PATH names relative to a working directory: a repository may hold anything under the name of a program, and what
// muster runs by itself must be the user's own.
func FindOutside(program string, env []string, dirs ...string) (path string, outside []string) {
	inside := slices.Clone(dirs)
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			inside = append(inside, real)
		}
	}
	isInside := func(path string) bool {
		return slices.ContainsFunc(inside, func(dir string) bool {
			rel, err := filepath.Rel(dir, path)
			return dir != "" && err == nil && filepath.IsLocal(rel)
		})
	}
	isOutside := func(path string) bool {
		real, err := filepath.EvalSymlinks(path)
		return err == nil && !isInside(path) && !isInside(real)
	}
	var list []string
	for _, dir := range filepath.SplitList(Variable(env, "PATH")) {
		if !filepath.IsAbs(dir) || !isOutside(dir) {
			continue
		}
		list = append(list, dir)
		if found, err := exec.LookPath(filepath.Join(dir, program)); path == "" && err == nil && isOutside(found) {
			path = found
		}
	}
	return path, WithVariables(env, "PATH="+strings.Join(list, string(filepath.ListSeparator)))
}
