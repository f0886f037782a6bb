use std::io;

use serde::Serialize;

/// The bytes of `value` as JSON.
pub(super) fn size(value: &impl Serialize) -> usize {
    struct Count(usize);

    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut count = Count(0);
    let counted = serde_json::to_writer(&mut count, value);
    debug_assert!(counted.is_ok());
    count.0
}
