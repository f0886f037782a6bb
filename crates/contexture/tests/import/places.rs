//! What has a place of its own is there, and what has none is named.
