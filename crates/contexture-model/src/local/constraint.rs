//! Answers that cannot be wrong in form: at each step only those tokens may come that a schema
//! allows.

use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};

use super::LocalError;
use super::ask::name;
use super::form::Form;
use super::slots::Id;
use super::words::function;
use crate::ModelError;

/// Makes constraints for one vocabulary.
pub(super) struct Constraints {
    factory: ParserFactory,
}

/// What the rest of an answer must look like.
pub(super) struct Constraint {
    matcher: Matcher,
}

impl Constraints {
    pub fn new(model: &llama_cpp_2::model::LlamaModel) -> Result<Self, LocalError> {
        let environment = LlamaSampler::llguidance_tok_env(model);
        let mut factory = ParserFactory::new_simple(&environment)
            .map_err(|error| LocalError::engine("the vocabulary allows no schemas", error))?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Self { factory })
    }

    /// A call of one of these tools, behind the form's mark.
    pub fn call<'a>(
        &self,
        form: &Form,
        tools: impl Iterator<Item = &'a Value>,
    ) -> Result<Constraint, ModelError> {
        let named = tools.filter_map(|tool| Some((name(tool)?, self.schema_of_arguments(tool))));
        let named: Vec<(&str, Value)> = named.collect();
        self.following(form.grammar(&named))
    }

    /// The arguments of a call whose tool was named, up to the end of its object.
    pub fn arguments(&self, tool: &Value) -> Result<Constraint, ModelError> {
        let schema = self.schema_of_arguments(tool);
        self.following(Form::grammar_of_arguments(&schema))
    }

    fn following(&self, grammar: String) -> Result<Constraint, ModelError> {
        self.made(TopLevelGrammar::from_lark(grammar))
            .map_err(|what| ModelError::Invalid {
                what: format!("no answer can be held to these tools: {what}"),
            })
    }

    /// A value of this schema.
    pub fn json(&self, schema: &Value) -> Result<Constraint, ModelError> {
        self.try_json(schema).map_err(|what| ModelError::Invalid {
            what: format!("no answer can be held to this schema: {what}"),
        })
    }

    fn try_json(&self, schema: &Value) -> Result<Constraint, String> {
        self.made(TopLevelGrammar::from_json_schema(in_one_way(schema)))
    }

    fn made(&self, grammar: TopLevelGrammar) -> Result<Constraint, String> {
        let matcher = Matcher::new(self.factory.create_parser(grammar));
        match matcher.get_error() {
            Some(error) => Err(first_line(&error)),
            None => Ok(Constraint { matcher }),
        }
    }

    /// A tool whose schema makes no sense takes any object: the call is checked before it runs.
    fn schema_of_arguments(&self, tool: &Value) -> Value {
        let any = json!({"type": "object"});
        let mut own = function(tool).get("parameters").unwrap_or(&any).clone();
        if let Some(fields) = own.as_object_mut() {
            fields.insert("type".to_owned(), json!("object"));
        }
        let usable = own.is_object() && self.try_json(&own).is_ok();
        in_one_way(if usable { &own } else { &any })
    }
}

/// A schema with one way to write a value, so that a small model has less to decide; what the engine cannot check is left
/// to whoever reads the answer.
fn in_one_way(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(fields) = schema.as_object_mut() {
        let form = json!({"whitespace_flexible": false, "key_separator": ": ",
            "item_separator": ", ", "coerce_one_of": true, "lenient": true});
        fields.insert("x-guidance".to_owned(), form);
    }
    schema
}

impl Constraint {
    /// Takes away what may not come next.
    pub fn mask(&mut self, next: &mut LlamaTokenDataArray) -> Result<(), ModelError> {
        let allowed = self.matcher.compute_mask_or_eos().map_err(lost)?;
        for token in &mut next.data {
            if !allowed.is_allowed(token.id().0.cast_unsigned()) {
                token.set_logit(f32::NEG_INFINITY);
            }
        }
        Ok(())
    }

    /// This text stands there already, in these tokens. Gives whether it may.
    pub fn has(&mut self, ids: &[Id]) -> bool {
        let ids: Vec<u32> = ids.iter().map(|id| id.cast_unsigned()).collect();
        let taken = self.matcher.try_consume_tokens(&ids);
        taken.is_ok_and(|taken| taken == ids.len())
    }

    /// This came next. Gives whether nothing more can come: a number may be whole and go on.
    pub fn take(&mut self, id: Id) -> Result<bool, ModelError> {
        self.matcher
            .consume_token(id.cast_unsigned())
            .map_err(lost)?;
        Ok(self.matcher.is_stopped())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err gives it")]
fn lost(error: impl ToString) -> ModelError {
    ModelError::Garbage {
        what: format!(
            "the schema cannot be followed: {}",
            first_line(&error.to_string())
        ),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
