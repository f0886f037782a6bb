//! What an agent sends, at the door.
