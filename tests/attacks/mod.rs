//! Hostile names, files and bytes, numbered as in the list of attacks. Those that need no `ctx` stand
//! beside what they attack: 24, 25, 27 and 37 in `crates/contexture-tools/tests`, 29, 30, 32 to 34 and 44
//! to 46 in its folder `shell`; those against the fleet (1 to 9, 15 to 20, 40) in `tests/fleet`, in
//! `crates/contexture-server/tests` and in `crates/contexture-fleet/tests`; 39 in the latter's folder `work`. 11
//! (aliases) and 12 (a template that yields a key) have nothing to try.

mod a09_keys;
mod a10_equal_keys;
mod a13_links;
mod a14_modes;
mod a21_forged_roles;
mod a22_hidden_characters;
mod a23_raw;
mod a23_terminal;
mod a26_survivors;
mod a28_templates;
mod a31_trust;
mod a35_approval;
mod a36_sizes;
mod a38_skills;
mod a41_secrets;
mod a42_shipped_state;
mod a43_links;
mod a44_credentials;
mod a45_instructions;
mod a47_descriptors;
mod a50_held;
mod a51_calls;
mod a52_numbers;
pub mod a56_streams;
mod hostile_folder;
mod hostile_peers;
mod list;

use crate::agent::scene as agent;
