//! `ctx acp`, as an editor sees it: the built program, a client with the official crate, a scripted
//! model, real tools, a real log.

pub mod host;
mod hostile;
mod js;
mod load;
mod permission;
mod servers;
mod stop;
mod turns;

use crate::agent::scene;
