use serde_json::Value;

use super::{ClientError, MAX_BYTES, Response, SILENCE, cut, read, too_long};

/// What happens, as it comes.
#[derive(Debug)]
pub struct Events {
    reader: Reader,
    last: Option<u64>,
}

impl Events {
    pub(super) fn new(reader: Reader) -> Self {
        Self { reader, last: None }
    }

    /// The next event: an object with its `type`, or `{"type":"missed","missed":N}`. None when the daemon
    /// stops.
    pub async fn next(&mut self) -> Result<Option<Value>, ClientError> {
        let Some(event) = self.reader.next().await? else {
            return Ok(None);
        };
        let mut said = read(event.data.as_bytes())?;
        if event.kind == "missed" {
            said["type"] = "missed".into();
        }
        self.last = event.id.parse().ok().or(self.last);
        Ok(Some(said))
    }

    /// The number of the last event, to go on behind it.
    pub fn last(&self) -> Option<u64> {
        self.last
    }
}

/// Reads server-sent events.
#[derive(Debug)]
pub(super) struct Reader {
    response: Response,
    bytes: Vec<u8>,
    /// Up to where no line ends.
    seen: usize,
    event: Sent,
}

/// An event as it was sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub id: String,
    pub kind: String,
    pub data: String,
    some: bool,
}

impl Reader {
    pub fn new(response: Response) -> Self {
        Self {
            response,
            bytes: Vec::new(),
            seen: 0,
            event: Sent::default(),
        }
    }

    /// The next event; none at the end.
    pub async fn next(&mut self) -> Result<Option<Sent>, ClientError> {
        loop {
            while let Some(line) = self.line() {
                if let Some(event) = self.event.take(&line) {
                    return Ok(Some(event));
                }
            }
            if self.bytes.len() + self.event.data.len() > MAX_BYTES {
                return Err(too_long());
            }
            let chunk = tokio::time::timeout(SILENCE, self.response.chunk()).await;
            match chunk.map_err(|_| ClientError::silent(SILENCE))? {
                Ok(Some(chunk)) => self.bytes.extend_from_slice(&chunk),
                Ok(None) => return Ok(None),
                Err(error) => return Err(cut(&error)),
            }
        }
    }

    fn line(&mut self) -> Option<String> {
        let end = self.bytes[self.seen..].iter().position(|b| *b == b'\n');
        let Some(end) = end.map(|end| end + self.seen) else {
            self.seen = self.bytes.len();
            return None;
        };
        let rest = self.bytes.split_off(end + 1);
        let line = std::mem::replace(&mut self.bytes, rest);
        self.seen = 0;
        Some(
            String::from_utf8_lossy(&line)
                .trim_end_matches(['\r', '\n'])
                .to_owned(),
        )
    }
}

impl Sent {
    /// Takes a line; gives the event that it ends.
    fn take(&mut self, line: &str) -> Option<Self> {
        if line.is_empty() {
            let event = std::mem::take(self);
            return event.some.then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.some {
                    self.data.push('\n');
                }
                self.some = true;
                self.data.push_str(value);
            }
            "id" => value.clone_into(&mut self.id),
            "event" => value.clone_into(&mut self.kind),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_the_standard_says() {
        let mut event = Sent::default();
        let text = ": alive\n\nid: 7\nevent:agent:state\ndata: {\ndata: }\n\ndata\n\nid: 8\n\n";
        let all: Vec<Sent> = text
            .split('\n')
            .filter_map(|line| event.take(line))
            .collect();
        let sent = |id: &str, kind: &str, data: &str| Sent {
            id: id.to_owned(),
            kind: kind.to_owned(),
            data: data.to_owned(),
            some: true,
        };
        assert_eq!(all, [sent("7", "agent:state", "{\n}"), sent("", "", "")]);
    }
}
