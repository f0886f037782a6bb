//! What the model sees of each file.

use insta::assert_snapshot;

use crate::{read, shape};

#[test]
fn claude_code_1_0() {
    let imported = read("claude-code-1.0");
    assert_snapshot!(shape::types(&imported), @"");
    assert_snapshot!(shape::history(&imported), @"");
}

#[test]
fn claude_code_2_1() {
    let imported = read("claude-code-2.1");
    assert_snapshot!(shape::types(&imported), @"");
    assert_snapshot!(shape::history(&imported), @"");
}

#[test]
fn claude_code_2_1_helper() {
    let imported = read("claude-code-2.1-helper");
    assert_snapshot!(shape::types(&imported), @"");
    assert_snapshot!(shape::history(&imported), @"");
}

#[test]
fn claude_code_compacted() {
    let imported = read("claude-code-compacted");
    assert_snapshot!(shape::types(&imported), @"");
    assert_snapshot!(shape::history(&imported), @"");
}

#[test]
fn claude_code_tree() {
    let imported = read("claude-code-tree");
    assert_snapshot!(shape::types(&imported), @"");
    assert_snapshot!(shape::history(&imported), @"");
}

#[test]
fn codex_0_20() {
    let imported = read("codex-0.20");
    assert_snapshot!(shape::types(&imported), @"");
    assert_snapshot!(shape::history(&imported), @"");
}

#[test]
fn codex_0_50() {
    let imported = read("codex-0.50");
    assert_snapshot!(shape::types(&imported), @"");
    assert_snapshot!(shape::history(&imported), @"");
}

#[test]
fn codex_0_166() {
    let imported = read("codex-0.166");
    assert_snapshot!(shape::types(&imported), @"");
    assert_snapshot!(shape::history(&imported), @"");
}

#[test]
fn codex_turns() {
    let imported = read("codex-turns");
    assert_snapshot!(shape::types(&imported), @"");
    assert_snapshot!(shape::history(&imported), @"");
}

#[test]
fn pi_1() {
    let imported = read("pi-1");
    assert_snapshot!(shape::types(&imported), @"");
    assert_snapshot!(shape::history(&imported), @"");
}

#[test]
fn pi_3() {
    let imported = read("pi-3");
    assert_snapshot!(shape::types(&imported), @"");
    assert_snapshot!(shape::history(&imported), @"");
}

#[test]
fn pi_tree() {
    let imported = read("pi-tree");
    assert_snapshot!(shape::types(&imported), @"");
    assert_snapshot!(shape::history(&imported), @"");
}
