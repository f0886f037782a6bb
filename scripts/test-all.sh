# ./test: every gate. Sourced, not run.

# Seconds that each stage takes on two cores, with nothing compiled yet and with everything but the workspace compiled.
target=${CARGO_TARGET_DIR:-target}
if [ -d "$target/release/deps" ]; then warm=1; else warm=0; fi
expect() { if [ $warm = 1 ]; then echo "$2"; else echo "$1"; fi; }
build_time=$(expect 540 220) lint_time=$(expect 90 80) test_time=330 doc_time=20
EXPECTED_IN_ALL=$((build_time + lint_time + test_time + doc_time))

mkdir -p target
install_servers
# The network is busy with these while the compiler has the cores.
{ install_counterparts; } >target/counterparts.log 2>&1 & counterparts_job=$!
{ install_model; } >target/model.log 2>&1 & model_job=$!

cargo fmt --all --check
members=(--workspace --exclude contexture-benches)
stage "build" "$build_time"
with_progress "$(if [ $warm = 1 ]; then echo part; else echo whole; fi)" \
  cargo nextest run --release "${members[@]}" --locked --no-run
stage "lints" "$lint_time"
with_progress part cargo clippy --release --workspace --all-targets --locked -- -D warnings
# Without the engine of the local model, which is what a machine without cmake can build.
with_progress part cargo clippy --release -p contexture-cli --no-default-features --locked -- -D warnings
wait $counterparts_job || echo "MCP servers, ACP agents and SDKs could not be installed (Node 20, npm, Python 3.10 with venv): see target/counterparts.log" >&2
wait $model_job || echo "the model could not be installed (Python 3.10 with venv): see target/model.log" >&2
stage "tests" "$test_time"
# Most tests wait, for processes and timers: three for each core keep the cores busy.
cargo nextest run --release "${members[@]}" --locked --no-fail-fast --test-threads $((3 * $(nproc)))
stage "docs" "$doc_time"
cargo test --release "${members[@]}" --doc --locked --quiet
RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps --locked --quiet
stage_times
count_skipped
