//! The system side of a request: templates in, named sections out.
//!
//! [`compose`] turns the caller's [`ComposeOptions`] into [`Section`]s, and into the one string
//! that a simple client wants. All wording lives in `templates/*.md` and is rendered by
//! [`Template`]; no code here contains a sentence meant for a model. [`ToolPolicy`] is both
//! printed for the model and enforced against it ([`policy`]). [`runtime`] renders the host's own
//! data.
//!
//! What never happens here: a value is never parsed as a template, so `{{token}}` in a user's text
//! stays `{{token}}`; and equal input never gives different bytes.

pub mod compose;
mod engine;
pub(crate) mod fields;
mod filters;
mod guard;
pub(crate) mod line;
pub mod options;
pub mod policy;
mod read;
pub mod runtime;
mod section;
mod signature;
mod template;
mod templates;

pub(crate) use compose::CONFIGURED;
pub use compose::{SEPARATOR, configured, sections, system_prompt, tool_policies};
pub use options::{
    AgentInfo, ComposeOptions, Edge, Graph, RunContext, RunState, SessionMode, Settings, Step,
    ToolPolicy,
};
pub use policy::{Filtered, Removed, Verdict};
pub(crate) use section::ONE_CALL;
pub use section::{Section, Stability};
pub(crate) use signature::arguments;
pub use signature::signature;
pub use template::{Template, render_str};
pub use templates::Templates;
