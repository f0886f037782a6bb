//! Model files: the shelf, and pulling one from an index that does as it is told, also badly.

mod command;
mod full_disk;
#[path = "../../crates/contexture-model/tests/gguf/writer.rs"]
#[allow(dead_code, reason = "only the small model is used")]
mod gguf_writer;
mod hostile;
mod index_server;
mod kill;
mod machine;
mod pull;
pub mod real;
mod resume;
mod scene;
mod shelf;
mod sources;
mod terminal;
mod tls;
