# ./test agents: the tests with agents that others wrote, from their packages, those that are too large for ./test, too.
# Sourced, not run.

{ install_counterparts && install_agents; } || echo "the agents could not be installed (Node 20 and npm, Python 3.10 with venv)" >&2
say "tests of agents"
with_progress part cargo nextest run --release -p contexture-cli -p contexture-fleet --locked --no-run
cargo nextest run --release -p contexture-cli -p contexture-fleet --locked --no-fail-fast --test-threads "$(nproc)" \
  -E 'test(/^fleet::real::/) | test(/^acp::real::/)'
echo "took $SECONDS s"
count_skipped
