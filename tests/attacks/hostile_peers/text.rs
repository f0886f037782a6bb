//! Text that commands a terminal, hides, or is of another type than expected.

use serde_json::{Value, json};

/// Clears the screen, writes to the clipboard, links, goes back, turns the text around, hides.
pub const HOSTILE: &str = "\u{1b}[2J\u{1b}]52;c;aGk=\u{7}\u{1b}]8;;http://x\u{7}\u{1b}P1$r\u{1b}\\\u{9b}31m\u{9d}0;x\u{9c}\u{8}\u{7f}\
    \u{202e}\u{200b}\u{200e}\u{200f}\u{61c}\u{180e}\u{2061}\u{2064}\u{206a}\u{206f}\u{e0041}\u{e0101}evil";

/// What of it reaches the terminal. `ctx` itself may move the cursor; it never does these.
pub fn harm(name: &str, shown: &str) -> Option<String> {
    let orders = ["\u{1b}[2J", "\u{1b}]", "\u{1b}P", "\u{1b}\\"];
    let order = orders
        .iter()
        .find(|order| shown.contains(**order))
        .map(|order| format!("{order:?}"));
    let hidden = |c: &char| {
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{61c}' | '\u{180e}'
            | '\u{e0000}'..='\u{e01ef}' | '\u{80}'..='\u{9f}' | '\u{7}' | '\u{8}' | '\u{7f}')
    };
    let found = order.or_else(|| shown.chars().find(hidden).map(|c| format!("{c:?}")))?;
    let shown: String = shown.chars().take(300).collect();
    Some(format!("{name}: {found} reaches the terminal: {shown:?}"))
}

/// The value with each of its parts replaced by something else, one at a time.
pub fn mutations(value: &Value) -> Vec<Value> {
    let mut all: Vec<Value> = others()
        .into_iter()
        .filter(|other| other != value)
        .collect();
    let within = |put: &mut dyn FnMut(Value) -> Value, inner: &Value| {
        mutations(inner).into_iter().map(put).collect::<Vec<_>>()
    };
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                let mut put = |new| {
                    let mut map = map.clone();
                    map.insert(name.clone(), new);
                    Value::Object(map)
                };
                all.extend(within(&mut put, inner));
                let mut without = map.clone();
                without.shift_remove(name);
                all.push(Value::Object(without));
            }
        }
        Value::Array(list) => {
            for (n, inner) in list.iter().enumerate() {
                let mut put = |new| {
                    let mut list = list.clone();
                    list[n] = new;
                    Value::Array(list)
                };
                all.extend(within(&mut put, inner));
            }
        }
        _ => {}
    }
    all
}

fn others() -> Vec<Value> {
    // Not as deep as what no reader takes at all: then there is nothing to answer, and one waits for the answer.
    let deep = (0..40).fold(json!({}), |value, _| json!({ "a": [value] }));
    vec![
        Value::Null,
        json!(-1),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!(HOSTILE),
        json!("x".repeat(300_000)),
        json!([]),
        json!({}),
        json!([[{}]]),
        deep,
    ]
}

/// So many of them, at random but always the same.
pub fn sample(mut all: Vec<Value>, many: usize) -> Vec<Value> {
    fastrand::Rng::with_seed(15).shuffle(&mut all);
    all.truncate(many);
    all
}
