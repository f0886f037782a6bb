//! Standard input and output as lines, each of bounded length.

use std::io;

use contexture::json::fits;
use futures_util::{Sink, Stream, sink, stream};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

/// The longest line, in bytes. An image in a prompt is one line.
const LONGEST: usize = 32 << 20;

/// The most memory that one may take once it is parsed.
const MAX_HELD_BYTES: usize = 48 << 20;

/// The stand-in for a line that is too long, or takes too much memory: no JSON, so that it is answered as such.
const TOO_LONG: &str = "(a line of more than 32 MiB, or of more than 48 MiB in memory)";

/// The lines that come in. One that is too long is passed over, and bytes that are no UTF-8 become
/// marks: either is the same as a line that is no JSON, and the next one counts again.
pub fn incoming(
    input: impl AsyncBufRead + Send + Unpin + 'static,
) -> impl Stream<Item = io::Result<String>> + Send + 'static {
    stream::unfold(input, |mut input| async {
        let line = line(&mut input, LONGEST).await.transpose()?;
        Some((line, input))
    })
}

/// Takes lines, and sends each as soon as it is there.
pub fn outgoing(
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> impl Sink<String, Error = io::Error> + Send + 'static {
    sink::unfold(output, |mut output, mut line: String| async move {
        line.push('\n');
        output.write_all(line.as_bytes()).await?;
        output.flush().await?;
        Ok(output)
    })
}

/// The next line that says something; none at the end.
async fn line(
    input: &mut (impl AsyncBufRead + Unpin),
    longest: usize,
) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let part = input.fill_buf().await?;
        let ended = part.is_empty();
        let newline = part.iter().position(|&byte| byte == b'\n');
        let taken = newline.unwrap_or(part.len());
        match line.len() + taken > longest {
            true => too_long = true,
            false if !too_long => line.extend_from_slice(&part[..taken]),
            false => {}
        }
        let passed = newline.map_or(taken, |at| at + 1);
        input.consume(passed);
        if newline.is_none() && !ended {
            continue;
        }
        if too_long || !fits(&line, MAX_HELD_BYTES) {
            return Ok(Some(TOO_LONG.to_owned()));
        }
        let text = String::from_utf8_lossy(&line).trim().to_owned();
        match (text.is_empty(), ended) {
            (false, _) => return Ok(Some(text)),
            (true, true) => return Ok(None),
            (true, false) => line.clear(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    async fn lines(text: &[u8], longest: usize) -> Vec<String> {
        // Small pieces, so that lines arrive in several.
        let mut input = tokio::io::BufReader::with_capacity(3, text);
        let mut lines = Vec::new();
        while let Some(line) = line(&mut input, longest).await.unwrap() {
            lines.push(line);
        }
        lines
    }

    #[tokio::test]
    async fn lines_are_read_whole_and_empty_ones_are_none() {
        let text = b"{\"a\":1}\n\r\n\n  two \r\nlast";
        assert_eq!(lines(text, 100).await, ["{\"a\":1}", "two", "last"]);
        assert!(lines(b"", 100).await.is_empty());
    }

    #[tokio::test]
    async fn what_is_too_long_is_passed_over_and_the_next_line_counts() {
        let text = [&[b'x'; 50][..], b"\nok\n", &[b'y'; 50][..]].concat();
        assert_eq!(lines(&text, 10).await, [TOO_LONG, "ok", TOO_LONG]);
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_do_not_end_it() {
        let read = lines(b"\xff\xfe\nok\n", 10).await;
        assert_eq!(read, ["\u{fffd}\u{fffd}", "ok"]);
    }
}
