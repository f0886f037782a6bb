# How far a build is, and what each stage took: shared by ./ctx and ./test. Sourced, not run.

# The share of a whole build's time that has passed, in thousandths, when 0, 10, 20 … 100 per cent of cargo's units are
# done. It is no straight line, because the large crates come last. Measured on two cores with `cargo build --timings`.
BUILD_CURVE=(0 40 80 120 160 220 330 450 560 700 1000)

duration() { # SECONDS
  if [ "$1" -lt 90 ]; then echo "$1 s"; else echo "$((($1 + 30) / 60)) min"; fi
}

# The seconds that a whole build still needs, or nothing while it is too early to tell.
build_left() { # UNITS_DONE UNITS SECONDS_SO_FAR
  local percent=$(($1 * 100 / $2)) part passed
  part=$((percent / 10))
  [ "$3" -ge 20 ] && [ "$part" -lt 10 ] || return 0
  passed=$((BUILD_CURVE[part] + (BUILD_CURVE[part + 1] - BUILD_CURVE[part]) * (percent % 10) / 10))
  [ "$passed" -lt 50 ] || echo $(($3 * (1000 - passed) / passed))
}

# Runs a cargo command and shows cargo's own count of units with what is being built; where WHOLE is `whole`, also how
# long it will take. On a terminal that is one line that changes, elsewhere a line a minute. What cargo has to say
# (warnings, errors) stands as it is.
with_progress() { # whole|part COMMAND…
  local whole=$1 result; shift
  result=$(mktemp)
  {
    local status=0
    CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=400 "$@" || status=$?
    echo "$status" >"$result"
    printf '\r' >&2
  } 2> >(show_progress "$whole" >&2)
  local status; status=$(cat "$result"); rm -f "$result"
  return "${status:-1}"
}

show_progress() { # whole|part, with cargo's words on stdin
  local whole=$1 start=$SECONDS next=$((SECONDS + 60)) chunk line text left width=400 erase='' end=$'\n'
  if [ -t 2 ] && [ "${TERM:-dumb}" != dumb ]; then
    erase=$'\r\033[K' end='' width=$(stty size <&2 2>/dev/null | cut -d' ' -f2)
  fi
  while IFS= read -r -d $'\r' chunk || [ -n "$chunk" ]; do
    while IFS= read -r line; do
      case $line in
        *Building\ [*) [[ $line =~ \]\ +([0-9]+)/([0-9]+)(:\ (.*[^ ]))? ]] || continue ;;
        *\ Compiling\ *|*\ Checking\ *|*\ Fresh\ *|*\ Documenting\ *|*\ Finished\ *|'') continue ;;
        *\ Updating\ *|*\ Fetch\ \[*|*\ Download*|*\ Blocking\ *) continue ;;
        *) printf '%s%s\n' "$erase" "$line"; continue ;;
      esac
      [ -z "$end" ] || [ "$SECONDS" -ge "$next" ] || continue
      next=$((SECONDS + 60)) left=
      [ "$whole" != whole ] || left=$(build_left "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" $((SECONDS - start)))
      text="  ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}${left:+, about $(duration "$left") left}: ${BASH_REMATCH[4]:-}"
      printf '%s%.*s%s' "$erase" "$((${width:-80} - 1))" "$text" "$end"
    done <<<"$chunk"
  done
  printf '%s' "$erase"
}

# Stages: `stage NAME SECONDS` begins one that is expected to take so long, `stages_left SECONDS` says what is expected
# of the rest, `stage_times` prints what each took. The first stages tell how fast this machine is, and the estimate of
# the others follows.
STAGE_NAME='' STAGE_START=0 STAGE_EXPECTED=0 STAGE_TABLE='' EXPECTED_SO_FAR=0 EXPECTED_IN_ALL=0 STAGES_BEGAN=$SECONDS

stage() { # NAME SECONDS
  stage_end
  local left=$((EXPECTED_IN_ALL - EXPECTED_SO_FAR)) took=$((SECONDS - STAGES_BEGAN))
  [ "$EXPECTED_SO_FAR" -lt 60 ] || left=$((left * took / EXPECTED_SO_FAR))
  STAGE_NAME=$1 STAGE_EXPECTED=$2 STAGE_START=$SECONDS
  say "$1 (about $(duration "$2"); all of it about $(duration "$left") from here)"
}

stage_end() {
  [ -n "$STAGE_NAME" ] || return 0
  STAGE_TABLE+=$(printf '  %-12s %5s s' "$STAGE_NAME" $((SECONDS - STAGE_START)))$'\n'
  EXPECTED_SO_FAR=$((EXPECTED_SO_FAR + STAGE_EXPECTED)) STAGE_NAME=
}

stage_times() {
  stage_end
  printf '\n%s  %-12s %5s s\n' "$STAGE_TABLE" "in all" $((SECONDS - STAGES_BEGAN))
}
