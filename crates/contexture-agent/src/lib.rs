//! The tool loop: build, call, run tools, append, again.
