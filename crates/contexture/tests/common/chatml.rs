//! A model that runs in the process, as far as a tokenizer tells of it: messages framed as in ChatML,
//! four bytes a token.

use contexture::message::openai;
use contexture::tokens::Tokenizer;
use contexture::{Message, Role};
use serde_json::{Map, Value};

/// The tokenizer. What it says of a request is what an engine does that is given the same body.
pub struct ChatMl;

// No text in UTF-8 has such bytes.
const BEGINNING: u32 = 0xffff_fff0;
const OPEN: u32 = 0xffff_fff1;
const CLOSE: u32 = 0xffff_fff2;

/// What a model is told where nobody gives it a system message.
const DEFAULT: &str = "You are a helpful assistant.";

impl Tokenizer for ChatMl {
    fn name(&self) -> &'static str {
        "chatml"
    }

    fn exact(&self) -> bool {
        true
    }

    fn count(&self, text: &str) -> usize {
        text.len().div_ceil(4)
    }

    fn message(&self, message: &Message) -> usize {
        let role = format!("{}\n", message.role.as_str());
        1 + self.count(&role) + self.count(&said(message)) + 1 + self.count("\n")
    }

    fn tools(&self, specs: &[Value]) -> usize {
        match specs {
            [] => 0,
            specs => {
                let each: usize = specs.iter().map(|spec| self.tool(spec)).sum();
                1 + self.count("system\n") + self.count("# Tools\n") + each + 1 + self.count("\n")
            }
        }
    }

    fn frame(&self, first: Option<&Message>) -> usize {
        let own = match is_system(first) {
            true => 0,
            false => self.message(&Message::system(DEFAULT)),
        };
        1 + own + invitation().len()
    }

    fn prompt(
        &self,
        messages: &mut dyn Iterator<Item = &Message>,
        tools: &[Value],
    ) -> Option<Vec<u32>> {
        let mut ids = vec![BEGINNING];
        let mut messages = messages.peekable();
        match messages.next_if(|first| is_system(Some(first))) {
            Some(first) => ids.extend(framed(first)),
            None => ids.extend(framed(&Message::system(DEFAULT))),
        }
        if !tools.is_empty() {
            ids.push(OPEN);
            ids.extend(encode("system\n"));
            ids.extend(encode("# Tools\n"));
            ids.extend(tools.iter().flat_map(|spec| encode(&spec.to_string())));
            ids.push(CLOSE);
            ids.extend(encode("\n"));
        }
        ids.extend(messages.flat_map(framed));
        Some(ids)
    }
}

/// An engine that keeps what it has read and said, and reads of a request what is new.
#[derive(Default)]
pub struct Engine {
    held: Vec<u32>,
}

impl Engine {
    /// Reads the request of this chat body. How many of its tokens it had, how many there are.
    pub fn read(&mut self, body: &[u8]) -> (usize, usize) {
        let mut body: Value = serde_json::from_slice(body).unwrap();
        let messages = body["messages"].as_array_mut().map(std::mem::take).unwrap();
        let messages: Vec<Message> = messages
            .into_iter()
            .map(|message| openai::read(message).unwrap())
            .collect();
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        let ids = ChatMl.prompt(&mut messages.iter(), &tools).unwrap();
        let had = ids.iter().zip(&self.held).take_while(|(a, b)| a == b);
        let (had, all) = (had.count(), ids.len() + invitation().len());
        self.held = ids;
        (had, all)
    }

    /// Says this, behind what it was asked.
    pub fn say(&mut self, reply: &Message) {
        self.held.extend(invitation());
        self.held.extend(encode(&said(reply)));
        self.held.push(CLOSE);
        self.held.extend(encode("\n"));
    }
}

fn is_system(message: Option<&Message>) -> bool {
    message.is_some_and(|message| message.role.is_system())
}

fn invitation() -> Vec<u32> {
    let role = format!("{}\n", Role::Assistant.as_str());
    std::iter::once(OPEN).chain(encode(&role)).collect()
}

fn framed(message: &Message) -> Vec<u32> {
    let role = format!("{}\n", message.role.as_str());
    let mut ids = vec![OPEN];
    ids.extend(encode(&role));
    ids.extend(encode(&said(message)));
    ids.push(CLOSE);
    ids.extend(encode("\n"));
    ids
}

/// All of a message that goes over the wire, but its role.
fn said(message: &Message) -> String {
    let mut bytes = Vec::new();
    openai::write(message, &mut bytes);
    let mut fields: Map<String, Value> = serde_json::from_slice(&bytes).unwrap();
    fields.shift_remove("role");
    let mut text = match fields.shift_remove("content") {
        Some(Value::String(text)) => text,
        None | Some(Value::Null) => String::new(),
        Some(parts) => parts.to_string(),
    };
    if !fields.is_empty() {
        text.push_str(&Value::Object(fields).to_string());
    }
    text
}

fn encode(text: &str) -> Vec<u32> {
    let id = |bytes: &[u8]| {
        let mut four = [0xff; 4];
        // A text that ends in the middle of four is no beginning of one that goes on.
        four[..bytes.len()].copy_from_slice(bytes);
        u32::from_be_bytes(four)
    };
    text.as_bytes().chunks(4).map(id).collect()
}
