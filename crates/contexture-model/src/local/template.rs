//! The chat template in a model's file: how it is rendered, and what it can say, found by trying.

use std::io::{self, Write};
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Enumerator, Kwargs, Object, Serde, Value};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};
use minijinja_contrib::pycompat::unknown_method_callback;
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::LocalError;
use super::form::{Form, PROBE, has_calls, short_id};

/// What a model without a template of its own is spoken to in.
const CHAT_ML: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n\
    {{ message.content }}<|im_end|>\n{% endfor %}\
    {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// Steps that one rendering may take: a template comes with the model's file, from anywhere.
const FUEL: u64 = 5_000_000;

/// The longest text that one may make.
const MOST: usize = 64 << 20;

/// How a model is spoken to: the template in its file, and what that can do.
pub(super) struct Template {
    environment: Environment<'static>,
    bos: String,
    eos: String,
    /// What it takes, found by trying.
    pub takes: Takes,
    /// The form in which a call is written.
    pub form: Form,
}

/// What a template can say. Found by trying it on a few words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Takes {
    /// A system message at the beginning.
    pub system: bool,
    /// System messages later on.
    pub systems: bool,
    /// Two messages of one role in a row.
    pub repeats: bool,
    /// Tools, calls and results, in the form that the model was trained on.
    pub tools: bool,
    /// Several calls in one message.
    pub several_calls: bool,
    /// Ids of calls as they come; else they are [`short_id`]s.
    pub any_id: bool,
}

/// One message, as templates know it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Spoken {
    pub role: &'static str,
    pub content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Spoken {
    pub fn new(role: &'static str, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
        }
    }
}

impl Template {
    /// Reads a template, and tries what it takes. `for_tools` is used instead where there are tools or calls.
    pub fn new(
        source: Option<&str>,
        for_tools: Option<&str>,
        bos: &str,
        eos: &str,
    ) -> Result<Self, LocalError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Lenient);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(64);
        environment.set_unknown_method_callback(unknown_method_callback);
        environment.add_function("raise_exception", refuse);
        environment.add_filter("tojson", to_json);
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(wrong)?;
        environment.set_syntax(syntax);
        let source = source.unwrap_or(CHAT_ML).to_owned();
        let for_tools = for_tools.unwrap_or(&source).to_owned();
        for (name, source) in [(CHAT, source), (CHAT_WITH_TOOLS, for_tools)] {
            environment
                .add_template_owned(name, source)
                .map_err(wrong)?;
        }
        let mut template = Self {
            environment,
            bos: bos.to_owned(),
            eos: eos.to_owned(),
            takes: Takes {
                system: true,
                systems: true,
                repeats: true,
                tools: true,
                several_calls: true,
                any_id: true,
            },
            form: Form::in_words(),
        };
        template.takes = template.tried()?;
        template.try_calls();
        Ok(template)
    }

    /// The text that the model reads, with or without the invitation to answer.
    pub fn render(
        &self,
        messages: &[Spoken],
        tools: &[Json],
        invite: bool,
    ) -> Result<String, LocalError> {
        self.try_render(messages, tools, invite).map_err(wrong)
    }

    fn try_render(
        &self,
        messages: &[Spoken],
        tools: &[Json],
        invite: bool,
    ) -> Result<String, Error> {
        let mut values = json!({
            "messages": messages,
            "add_generation_prompt": invite,
            "bos_token": self.bos,
            "eos_token": self.eos,
        });
        if !tools.is_empty() {
            values["tools"] = tools.into();
        }
        let values = in_order(values);
        let name = match tools.is_empty() && !has_calls(messages) {
            true => CHAT,
            false => CHAT_WITH_TOOLS,
        };
        let mut out = Bounded(Vec::new());
        self.environment
            .get_template(name)?
            .render_captured_to(values, &mut out)?;
        String::from_utf8(out.0).map_err(|_| Error::from(ErrorKind::WriteFailure))
    }

    fn tried(&self) -> Result<Takes, LocalError> {
        let (user, reply) = (Spoken::new("user", "q1"), Spoken::new("assistant", "a1"));
        let system = |text: &str| Spoken::new("system", text);
        // Whoever cannot say a question cannot say anything.
        self.render(std::slice::from_ref(&user), &[], true)?;
        let says = |messages: &[Spoken], tools: &[Json], words: &[&str]| {
            let said = self.try_render(messages, tools, true).unwrap_or_default();
            words.iter().all(|word| said.contains(word))
        };
        let again = Spoken::new("user", "q2");
        Ok(Takes {
            system: says(&[system("s1"), user.clone()], &[], &["s1", "q1"]),
            systems: says(
                &[
                    system("s1"),
                    user.clone(),
                    reply,
                    system("s2"),
                    again.clone(),
                ],
                &[],
                &["s1", "q1", "s2", "q2"],
            ),
            repeats: says(&[user, again], &[], &["q1", "q2"]),
            tools: false,
            several_calls: false,
            any_id: true,
        })
    }

    /// Finds out how tools, calls and results are written; where the template cannot say one of them, all are said in
    /// words.
    fn try_calls(&mut self) {
        let arguments: Json = contexture::json::from_text(PROBE.1).unwrap_or_default();
        let tools = [
            json!({"type": "function", "function": {"name": PROBE.0, "description": "d1",
            "parameters": {"type": "object", "properties": {"place": {"type": "string"}}}}}),
        ];
        let user = |text: &str| Spoken::new("user", text);
        let called = |id: &str| json!({"id": id, "type": "function", "function": {"name": PROBE.0, "arguments": arguments}});
        let calls = |ids: &[&str]| Spoken {
            tool_calls: ids.iter().map(|id| called(id)).collect(),
            ..Spoken::new("assistant", "")
        };
        let result = |id: &str, text: &str| Spoken {
            tool_call_id: Some(id.to_owned()),
            name: Some(PROBE.0.to_owned()),
            ..Spoken::new("tool", text)
        };
        let says = |messages: &[Spoken], words: &[&str]| {
            let said = self.try_render(messages, &tools, true).unwrap_or_default();
            words.iter().all(|word| said.contains(word))
        };
        let form = |id: &str| {
            let asked = self.try_render(&[user("q1")], &tools, true).ok()?;
            let answered = self.try_render(&[user("q1"), calls(&[id])], &tools, false);
            let answered = answered.ok()?;
            let pairs = asked.char_indices().zip(answered.chars());
            let differs = pairs.into_iter().find(|((_, a), b)| a != b);
            let same = differs.map_or(asked.len(), |((at, _), _)| at);
            Form::parse(answered.get(same..)?, id)
        };
        let long = "call_1234_0";
        let Some((id, form)) = [long.to_owned(), short_id(long)]
            .into_iter()
            .find_map(|id| form(&id).map(|form| (id, form)))
        else {
            return;
        };
        let (one, other) = (id.as_str(), short_id("other"));
        let other = if one == long { "call_1234_1" } else { &other };
        let reply = Spoken::new("assistant", "a1");
        let talk = [
            user("q1"),
            calls(&[one]),
            result(one, "r1"),
            reply,
            user("q2"),
        ];
        if !says(&talk, &["d1", "q1", "r1", "a1", "q2"]) || !says(&talk[..3], &["d1", "r1"]) {
            return;
        }
        let talk = [
            user("q1"),
            calls(&[one, other]),
            result(one, "r1"),
            result(other, "r2"),
        ];
        let several_calls = says(&talk, &["r1", "r2"]);
        self.takes.tools = true;
        self.takes.several_calls = several_calls;
        self.takes.any_id = one == long;
        self.form = form;
    }
}

/// The names of the two templates that a file may have.
const CHAT: &str = "chat";
const CHAT_WITH_TOOLS: &str = "chat with tools";

/// A JSON object whose fields stay in their order: models have seen tools and calls with the name first.
#[derive(Debug)]
struct InOrder(Vec<(String, Value)>);

impl Object for InOrder {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = key.as_str()?;
        let field = self.0.iter().find(|(name, _)| name == key);
        field.map(|(_, value)| value.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let names = self.0.iter().map(|(name, _)| Value::from(name));
        Enumerator::Values(names.collect())
    }
}

fn in_order(value: Json) -> Value {
    match value {
        Json::Object(fields) => {
            let fields = fields.into_iter();
            Value::from_object(InOrder(
                fields
                    .map(|(name, value)| (name, in_order(value)))
                    .collect(),
            ))
        }
        Json::Array(all) => all.into_iter().map(in_order).collect(),
        Json::String(text) => Value::from(text),
        other => Value::from(Serde(other)),
    }
}

fn wrong(error: impl std::fmt::Display) -> LocalError {
    LocalError::Template {
        what: error.to_string(),
    }
}

fn refuse(what: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, what))
}

/// As Python writes it, which is what models have seen.
#[expect(clippy::needless_pass_by_value, reason = "as the engine gives it")]
fn to_json(value: &Value, options: Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    // Templates also pass options that change nothing here, such as `ensure_ascii`.
    let bad = |error: serde_json::Error| {
        Error::new(ErrorKind::BadSerialization, "no JSON").with_source(error)
    };
    let mut out = Vec::new();
    match indent {
        Some(indent) => {
            let indent = " ".repeat(indent.min(16));
            let form = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
            let mut to = serde_json::Serializer::with_formatter(&mut out, form);
            value.serialize(&mut to).map_err(bad)?;
        }
        None => {
            let mut to = serde_json::Serializer::with_formatter(&mut out, Spaced);
            value.serialize(&mut to).map_err(bad)?;
        }
    }
    String::from_utf8(out)
        .map(Value::from_safe_string)
        .map_err(|_| Error::from(ErrorKind::BadSerialization))
}

/// JSON with a blank behind each comma and colon.
pub(super) struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

/// Memory that refuses to grow past [`MOST`].
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
