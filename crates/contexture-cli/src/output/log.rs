//! Where log lines go. What an agent or a tool said is among their fields.

use std::io;

use super::tell;

/// Standard error as a log has it: a record at once, and no record that cannot be written is an error.
#[derive(Debug, Clone, Copy)]
pub struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        tell(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
