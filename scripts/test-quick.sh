# ./test quick [BASE]: format, lints, and the tests of the crates and groups that changed. Sourced, not run.

base=${1:-$(git merge-base HEAD '@{upstream}' 2>/dev/null || echo HEAD)}
git rev-parse --quiet --verify "$base^{commit}" >/dev/null || { echo "./test quick: git knows no commit \`$base\`" >&2; exit 2; }
changed=$({ git diff --name-only "$base" --; git ls-files --others --exclude-standard; } | sort -u)

# A crate's own tests, and the groups of `tests/`, which run the built ctx.
crates='' groups='' command=''
while IFS=/ read -r top name rest; do
  case $top/$name in
    crates/contexture-cli) command=1 groups+=' cli' ;;
    crates/*) crates+=" $name" ;;
    tests/common|tests/main.rs|tests/counterparts) groups+=' cli' ;;
    tests/*) groups+=" ${name%.rs}" ;;
    Cargo.*/|.cargo/*) command=1 groups+=' cli' ;;
  esac
done <<<"$changed"
once() { printf '%s\n' $1 | sort -u; }

# Each crate's tests are one binary, named after the crate. `ctx` comes along always: dependencies have the features
# that all selected packages ask of them, so without it they would be built once more.
select=(-p contexture-cli) targets=()
for name in $(once "$crates"); do
  [ -d "crates/$name" ] || continue
  short=${name#contexture-}
  case $name in contexture) short=core ;; esac
  # Cargo takes these once for all of them. Some tests start an example.
  [ ${#targets[@]} != 0 ] || targets=(--lib --examples)
  select+=(-p "$name") targets+=(--test "$short")
done
filter=$(printf ' | package(=%s)' $(once "$crates"))
[ -n "$crates" ] || filter=
if [ -n "$command" ]; then targets+=(--bin ctx) filter+=' | kind(bin)'; fi
if [ -n "$groups" ]; then
  targets+=(--test ctx)
  for group in $(once "$groups"); do filter+=" | (binary(=ctx) & test(/^$group::/))"; done
fi

say "format"
cargo fmt --all --check
say "lints"
with_progress part cargo clippy --release --workspace --all-targets --locked -- -D warnings
if [ ${#targets[@]} = 0 ]; then
  say "no crate and no test changed since $(git rev-parse --short "$base")"
else
  say "tests of: $(echo $(once "$crates$groups"))"
  cargo nextest run --release --profile quick "${select[@]}" "${targets[@]}" --locked --test-threads $((3 * $(nproc))) \
    -E "${filter# | }"
fi
echo "took $SECONDS s"
