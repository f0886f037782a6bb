# What ./ctx and ./test share: the system's packages. Sourced, not run.

say() { printf '\n\033[1m%s\033[0m\n' "$*" >&2; }

# Runs a line of shell as root, where that is possible without a question.
as_root() {
  if [ "$(id -u)" = 0 ]; then sh -ec "$@"; else sudo -n sh -ec "$@" 2>/dev/null; fi
}

# Installs Debian packages where that is possible; says nothing where it is not. apt's own words are shown if it fails.
install_packages() {
  [ $# -gt 0 ] && command -v apt-get >/dev/null && as_root true || return 0
  local words; words=$(mktemp)
  say "installing $* (once, about a minute)"
  as_root 'export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq && apt-get install -qqy -o Dpkg::Options::=--force-confold "$@"' - "$@" >"$words" 2>&1 </dev/null \
    || tail -n 20 "$words" >&2
  rm -f "$words"
}

# libclang itself, which is not libclang-cpp: that one comes along with other packages.
has_libclang() {
  local place
  [ -n "${LIBCLANG_PATH:-}" ] && return
  for place in /usr/lib/llvm-*/lib /usr/lib64 /usr/lib/*-linux-gnu /usr/local/lib \
    "$(llvm-config --libdir 2>/dev/null)"; do
    compgen -G "$place/libclang.so*" >/dev/null || compgen -G "$place/libclang-[0-9]*.so*" >/dev/null && return
  done
  return 1
}

# What building the engine of the local model takes: a C++ compiler, cmake, libclang.
need_engine_tools() {
  local missing=()
  command -v c++ >/dev/null || missing+=(g++)
  command -v cmake >/dev/null || missing+=(cmake)
  has_libclang || missing+=(libclang-dev)
  install_packages "${missing[@]}"
  command -v c++ >/dev/null && command -v cmake >/dev/null && has_libclang && return
  echo "missing to build the local model: a C++ compiler, cmake and libclang (Debian: apt install g++ cmake libclang-dev)" >&2
  return 1
}

need_cargo() {
  command -v cargo >/dev/null && return
  echo "cargo is missing: install Rust 1.92 or newer with rustup" >&2
  return 1
}
