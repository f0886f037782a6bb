//! What the model sees of each file.

use insta::assert_snapshot;

use crate::import::{read, shape};

#[test]
fn claude_code_1_0() {
    let imported = read("claude-code-1.0");
    assert_snapshot!(shape::types(&imported), @"session_header message×6");
    assert_snapshot!(shape::history(&imported), @r#"
    00 user "Look at both, and the picture; ask a helper…
    01 assistant thinking sealed "Two things to look at." "I look at both." + Bash("{\"command\":\"echo one\",\"description\":\…) + Read("{\"file_path\":\"/home/ana/project/notes.tx…) + Read("{\"file_path\":\"/home/ana/project/dot.png\…)
    02 tool(toolu_1199b) "     1→hello from the notes\n     2→"
    03 tool(toolu_1199c) image "data:image/png;base64,iVBORw0KGgoAAAANSUhEU…
    04 tool(toolu_1199a) "one"
    05 assistant "Done: one, and the notes say hello."
    "#);
}

#[test]
fn claude_code_2_1() {
    let imported = read("claude-code-2.1");
    assert_snapshot!(shape::types(&imported), @"session_header custom×2 message custom×2 message×7 custom×5 compaction_summary message×3 custom×5 message×3 custom message");
    assert_snapshot!(shape::history(&imported), @r#"
    00 summary "This session goes on from an earlier one.\n…
    01 assistant "Done: one, and the notes say hello."
    02 user "<local-command-caveat>Commands, not for you…
    03 user "<command-name>/compact</command-name>\n    …
    04 user "<local-command-stdout>Compacted (ctrl+o to …
    05 user "Continue from where you left off."
    06 assistant "No response requested."
    07 user "Once more"
    08 assistant thinking sealed "Two things to look at." "I look at both." + Bash("{\"command\":\"echo one\",\"description\":\…)
    "#);
}

#[test]
fn claude_code_2_1_helper() {
    let imported = read("claude-code-2.1-helper");
    assert_snapshot!(shape::types(&imported), @"session_header message custom message");
    assert_snapshot!(shape::history(&imported), @r#"
    00 user "Reply with one word"
    01 assistant thinking sealed "Two things to look at." "I look at both." + Bash("{\"command\":\"echo one\",\"description\":\…) + Read("{\"file_path\":\"/home/ana/project/notes.tx…)
    "#);
}

#[test]
fn claude_code_compacted() {
    let imported = read("claude-code-compacted");
    assert_snapshot!(shape::types(&imported), @"session_header message×2 custom compaction_summary message×2 custom compaction_summary message custom compaction_summary message×2");
    assert_snapshot!(shape::history(&imported), @r#"
    00 user "In two blocks:" "all of it."
    01 user "Four"
    "#);
}

#[test]
fn claude_code_tree() {
    let imported = read("claude-code-tree");
    assert_snapshot!(shape::types(&imported), @"session_header custom message×8 custom message×3 custom message custom");
    assert_snapshot!(shape::history(&imported), @r#"
    00 user "What is on this picture?" image "data:image/png;base64,aWNvbg==" file
    01 assistant "A dot. I ask a helper." + Task("{\"prompt\":\"Count the dots\",\"depth\":1.…)
    02 tool(t1) "One dot." image "https://example.org/dot.png"
    03 user "And be quick."
    04 assistant "The first answer."
    05 user "The question instead."
    06 assistant "The answer instead."
    "#);
}

#[test]
fn codex_0_20() {
    let imported = read("codex-0.20");
    assert_snapshot!(shape::types(&imported), @"session_header custom message custom×2 message×4 custom×2 message×2 custom×2 message×2 custom×2 message");
    assert_snapshot!(shape::history(&imported), @r#"
    00 user "Look at both"
    01 assistant thinking "**Looking at both**" "I look at both." + shell("{\"command\": [\"bash\", \"-lc\", \"echo on…)
    02 tool(call_11910) "{\"output\":\"one\\n\",\"metadata\":{\"exit…
    03 assistant + shell("{\"command\": [\"bash\", \"-lc\", \"cat not…)
    04 tool(call_11911) "{\"output\":\"hello from the notes\\n\",\"m…
    05 assistant + shell("{\"command\": [\"bash\", \"-lc\", \"cat mis…)
    06 tool(call_1192) "{\"output\":\"cat: missing.txt: No such fil…
    07 assistant + shell("{\"command\": [\"bash\", \"-lc\", \"cat mis…)
    08 tool(call_1193) "{\"output\":\"cat: missing.txt: No such fil…
    09 assistant "Done: one, and the notes say hello."
    "#);
}

#[test]
fn codex_0_50() {
    let imported = read("codex-0.50");
    assert_snapshot!(shape::types(&imported), @"session_header message×2 custom model_change custom×4 message×4 model_change custom×2 message×2 model_change custom×2 message×2 model_change custom×3 message");
    assert_snapshot!(shape::history(&imported), @r#"
    00 user "<environment_context>\n  <cwd>/home/ana/pro…
    01 user "Look at both"
    02 assistant thinking "**Looking at both**" "I look at both." + shell("{\"command\": [\"bash\", \"-lc\", \"echo on…)
    03 tool(call_11950) "{\"output\":\"one\\n\",\"metadata\":{\"exit…
    04 assistant + shell("{\"command\": [\"bash\", \"-lc\", \"cat not…)
    05 tool(call_11951) "{\"output\":\"hello from the notes\\n\",\"m…
    06 assistant + apply_patch("*** Begin Patch\n*** Add File: new.txt\n+he…)
    07 tool(call_1196) "{\"output\":\"Success. Updated the followin…
    08 assistant + shell("{\"command\": [\"bash\", \"-lc\", \"cat mis…)
    09 tool(call_1197) "{\"output\":\"cat: missing.txt: No such fil…
    10 assistant "Done: one, and the notes say hello."
    "#);
}

#[test]
fn codex_0_166() {
    let imported = read("codex-0.166");
    assert_snapshot!(shape::types(&imported), @"session_header custom message×2 custom model_change custom message custom×2 message custom×4 message×2 custom×2 message custom×2 message custom message custom×6 message custom×3 compaction_summary message custom message×3 custom model_change custom×3 message custom×2 message custom");
    assert_snapshot!(shape::history(&imported), @r#"
    00 developer "<skills_instructions>No skills.</skills_ins… "<permissions>All.</permissions>"
    01 user "Look at both"
    02 user "<environment_context>\n  <cwd>/home/ana/pro…
    03 user "Again"
    04 user "A summary of the work so far:\nDone: one, a…
    05 user "Thrice"
    06 assistant thinking "**Looking at both**" "I look at both." + exec_command("{\"cmd\": \"echo one\"}")
    "#);
}

#[test]
fn codex_turns() {
    let imported = read("codex-turns");
    assert_snapshot!(shape::types(&imported), @"session_header message×4 custom message×5 custom message×2 custom compaction_summary message×2 custom message");
    assert_snapshot!(shape::history(&imported), @r#"
    00 summary "The picture has one dot."
    01 user "<environment_context>\n  <cwd>/home/ana/pro…
    02 user "What is this?" image "data:image/png;base64,aWNvbg=="
    03 user "Count them."
    04 user "Are you sure?"
    05 assistant "Yes."
    06 user "Thanks."
    "#);
}

#[test]
fn pi_1() {
    let imported = read("pi-1");
    assert_snapshot!(shape::types(&imported), @"session_header message×4 compaction_summary message custom");
    assert_snapshot!(shape::history(&imported), @r#"
    00 summary "One was first."
    01 user "Two"
    02 assistant "Second."
    03 user "Three"
    "#);
}

#[test]
fn pi_3() {
    let imported = read("pi-3");
    assert_snapshot!(shape::types(&imported), @"session_header model_change custom message×8");
    assert_snapshot!(shape::history(&imported), @r#"
    00 user "Look at both"
    01 assistant thinking "Two things to look at." "I look at both." + bash("{\"command\":\"echo one\"}") + read("{\"path\":\"notes.txt\"}")
    02 tool(call_1a) "one\n"
    03 tool(call_1b) "hello from the notes\n"
    04 assistant + read("{\"path\":\"missing.txt\"}")
    05 tool(call_2) "ENOENT: no such file or directory, access '…
    06 assistant "Done: one, and the notes say hello."
    07 user "Again, please"
    "#);
}

#[test]
fn pi_tree() {
    let imported = read("pi-tree");
    assert_snapshot!(shape::types(&imported), @"session_header message×6 branch_summary model_change custom message×3 custom message custom compaction_summary custom message");
    assert_snapshot!(shape::history(&imported), @r#"
    00 summary "The notes greet."
    01 user "It is noon."
    02 user "It is one."
    03 user "And now?" image "data:image/png;base64,aWNvbg=="
    "#);
}
