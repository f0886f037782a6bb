//! Anthropic's messages body, written.
