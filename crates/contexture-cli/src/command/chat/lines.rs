//! Standard input where it is no terminal: a message a line.

use std::io::Read;

/// The next line, within bounds; none at the end.
pub fn line(input: &mut impl Read, most: u64) -> std::io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut byte = [0];
    while input.read(&mut byte)? > 0 {
        if byte[0] == b'\n' {
            return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
        }
        if line.len() as u64 >= most {
            let what = format!("a line is longer than {most} bytes");
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
        }
        line.push(byte[0]);
    }
    Ok((!line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned()))
}
