//! Failures that users of other systems reported, each with its reference: a session like theirs,
//! and what Contexture makes of it.

use crate::anthropic::check as anthropic;
use crate::common::scenario::{Scenario, tool};
use crate::responses::check as responses;
use contexture::build::{Rule, Wire};
use contexture::prompt::Section;
use contexture::{Message, Role, ToolCall};
use serde_json::{Value, json};

/// About `tokens` tokens of text that begins with `start`.
fn long(start: &str, tokens: usize) -> String {
    format!("{start}{}", " word".repeat(tokens))
}

/// What every provider that speaks OpenAI's form checks.
#[track_caller]
fn check(s: &Scenario) -> Vec<Value> {
    let messages = s.body()["messages"].as_array().unwrap();
    crate::common::check_pairs("peers", messages);
    messages.clone()
}

/// The blocks of an Anthropic body, with the role of their turn.
#[track_caller]
fn blocks(s: &Scenario) -> Vec<(String, Value)> {
    anthropic::check_body(s.bytes());
    let turns = s.body()["messages"].as_array().unwrap().iter();
    let blocks = turns.flat_map(|turn| {
        let role = turn["role"].as_str().unwrap();
        let blocks = turn["content"].as_array().unwrap().iter();
        blocks.map(move |block| (role.to_owned(), block.clone()))
    });
    blocks.collect()
}

/// A question, and so many calls with long results that the question is far back.
fn long_run(mut s: Scenario, calls: usize) -> Scenario {
    s = s.system("You are terse.").user("Why does the build fail?");
    for n in 0..calls {
        s = s.tool(&format!("call_{n}"), &long("out", 150));
    }
    s
}

/// oobabooga/textgen#7655: with tool messages behind it, the user's question counted as old history
/// and was trimmed, and everything that followed it as well.
#[test]
fn the_question_outlives_the_work_on_it() {
    for s in [Scenario::new(1_000), Scenario::new(1_000).no_compactor()] {
        let s = long_run(s, 12).build();
        let messages = check(&s);
        let asked = json!({"role": "user", "content": "Why does the build fail?"});
        assert!(messages.contains(&asked), "{}", s.shape());
    }
}

/// BerriAI/litellm#4931: trimming took the message that asks for a tool and kept the tool's result,
/// which the provider refused.
#[test]
fn trimming_takes_calls_with_their_results() {
    for budget in (150..2_000).step_by(50) {
        let s = long_run(Scenario::new(budget).no_compactor(), 12).build();
        let messages = check(&s);
        assert_eq!(messages[0]["role"], "system");
        assert_ne!(messages[1]["role"], "tool");
    }
}

/// BerriAI/litellm#6505: though everything fitted, trimming a history that ends in a tool's result
/// gave it back without that result.
#[test]
fn what_fits_is_left_alone() {
    let s = Scenario::new(1_000)
        .system("You are terse.")
        .user("Go")
        .tool("call_1", "done")
        .build();
    assert!(s.appended().is_empty());
    assert_eq!(check(&s).last().unwrap()["content"], "done");
    assert!(s.receipt().excluded.is_empty());
}

/// OpenHands/OpenHands#7512: after the history was cut to the window, a call without its result was
/// left, and every further request was refused with a 400.
#[test]
fn every_call_is_answered_after_a_cut() {
    for budget in (150..2_000).step_by(50) {
        let s = Scenario::new(budget).no_compactor().wire(Wire::Anthropic);
        let s = long_run(s, 12).calls(&["call_x", "call_y"]).user("Stop");
        let blocks = blocks(&s.build());
        let last = &blocks.last().unwrap().1;
        assert_eq!(last["text"], "Stop");
    }
}

/// anomalyco/opencode#1279 and NVIDIA-NeMo/Switchyard#502: a server that numbers its calls from 0 in
/// every reply gave ids that Anthropic refuses as not unique.
#[test]
fn reused_call_ids_go_out_unique() {
    let s = Scenario::new(2_000)
        .wire(Wire::Anthropic)
        .user("Go")
        .calls(&["call_0", "call_0"])
        .result("call_0", "first")
        .result("call_0", "second")
        .tool("call_0", "third")
        .build();
    let blocks = blocks(&s);
    let used: Vec<&str> = blocks
        .iter()
        .filter_map(|(_, block)| block["id"].as_str())
        .collect();
    let results: Vec<(&str, &str)> = blocks
        .iter()
        .filter_map(|(_, b)| Some((b["tool_use_id"].as_str()?, b["content"].as_str()?)))
        .collect();
    assert_eq!(used.len(), 3);
    let said = ["first", "second", "third"];
    assert_eq!(results, used.into_iter().zip(said).collect::<Vec<_>>());
}

/// vercel/ai#7834 and camel-ai/camel#3027: a server gave every call the empty id; results under one
/// and the same id were taken for copies of each other and thrown away.
#[test]
fn empty_call_ids_lose_no_result() {
    let calls = ["a", "b"].map(|name| ToolCall::new("", name, "{}"));
    for wire in [Wire::OpenAi, Wire::Anthropic, Wire::Responses] {
        let s = Scenario::new(2_000)
            .wire(wire)
            .user("Go")
            .message(Message::calls(calls.clone()))
            .result("", "from a")
            .result("", "from b")
            .build();
        let results: Vec<_> = s
            .messages()
            .iter()
            .filter(|m| m.role == Role::Tool)
            .collect();
        assert_eq!(results[0].text(), "from a");
        assert_eq!(results[1].text(), "from b");
        assert_eq!(results.len(), 2);
        match wire {
            Wire::OpenAi => drop(check(&s)),
            Wire::Anthropic => drop(blocks(&s)),
            Wire::Responses => responses::check_body(s.bytes()),
        }
    }
}

/// anthropics/anthropic-sdk-python#461: the API gives empty text blocks and refuses to take them
/// back.
#[test]
fn empty_text_is_not_sent() {
    let empty = json!({"role": "assistant", "content": [{"type": "text", "text": ""}], "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]});
    let s = Scenario::new(2_000)
        .wire(Wire::Anthropic)
        .user("Go")
        .json(empty)
        .result("call_1", "")
        .assistant("")
        .json(json!({"role": "user", "content": [{"type": "text", "text": " "}, {"type": "text", "text": "Well?"}]}))
        .build();
    let blocks = blocks(&s);
    let texts: Vec<_> = blocks
        .iter()
        .filter_map(|(_, block)| block["text"].as_str())
        .collect();
    assert_eq!(texts, ["Go", "Well?"]);
}

/// anomalyco/opencode#1295: a reply that was cut off ends in a space, and the next request was
/// refused: the final assistant content may not end in white space.
#[test]
fn the_last_words_of_an_assistant_do_not_end_in_white_space() {
    let s = Scenario::new(2_000)
        .wire(Wire::Anthropic)
        .user("Write a poem")
        .assistant("The quick brown \n\t ")
        .build();
    let (role, block) = blocks(&s).pop().unwrap();
    assert_eq!(
        (role.as_str(), &block["text"]),
        ("assistant", &json!("The quick brown"))
    );
    // In the midst it stays as it was: changing it would break the cache.
    let s = s.user("Go on").build();
    let blocks = blocks(&s);
    assert_eq!(blocks[1].1["text"], "The quick brown \n\t ");
}

/// langchain-ai/langchain#34282: the summary took in a message with parallel calls and left its
/// results behind.
#[test]
fn a_summary_never_splits_parallel_calls() {
    let ids = ["call_0", "call_1", "call_2", "call_3", "call_4", "call_5"];
    for budget in (700..2_400).step_by(50) {
        let mut s = Scenario::new(budget).user("Read these files");
        for _ in 0..4 {
            s = s.calls(&ids);
            for id in ids {
                s = s.result(id, &long("content", 60));
            }
        }
        let s = s.user("And?").build();
        let messages = check(&s);
        let results = messages.iter().filter(|m| m["role"] == "tool").count();
        assert_eq!(results % ids.len(), 0, "{}", s.shape());
    }
}

/// microsoft/semantic-kernel#12612: the reducer that keeps the newest messages deleted the system
/// prompt.
#[test]
fn the_system_prompt_is_never_dropped() {
    for most in 2..12 {
        let mut s = Scenario::new(100_000)
            .config(|c| c.max_history_messages = Some(most))
            .system("You are terse.");
        for n in 0..20 {
            s = s.user(&format!("Question {n}")).assistant("Answer");
        }
        let s = s.user("Last question").build();
        let messages = check(&s);
        // The system prompt does not count, nor does a summary.
        assert!(messages.len() <= most + 2);
        assert_eq!(
            messages[0],
            json!({"role": "system", "content": "You are terse."})
        );
        assert_eq!(messages.last().unwrap()["content"], "Last question");
    }
}

/// JohnnyZ93/oai-compatible-copilot#217 and agentscope-ai/agentscope#1668: thinking without its
/// signature, from another provider or lost on the way, made Anthropic refuse the history.
#[test]
fn thinking_without_a_signature_is_not_sent() {
    let thinking = |signature: Value| {
        json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": signature},
            {"type": "text", "text": "Yes."}]})
    };
    let s = Scenario::new(2_000)
        .wire(Wire::Anthropic)
        .user("Sure?")
        .json(thinking(Value::Null))
        .user("Really?")
        .json(thinking(json!("")))
        .user("Really really?")
        .json(thinking(json!("c2VhbA==")))
        .user("Good.")
        .build();
    let blocks = blocks(&s);
    let thoughts: Vec<_> = blocks
        .iter()
        .filter(|(_, block)| block["type"] == "thinking")
        .map(|(_, block)| block["signature"].as_str().unwrap())
        .collect();
    assert_eq!(thoughts, ["c2VhbA=="]);
}

/// anomalyco/opencode#27924: a compaction that cannot bring the context under its threshold was
/// tried again after every step, without end.
#[test]
fn compaction_that_cannot_help_is_not_repeated() {
    for budget in (500..1_500).step_by(50) {
        let pinned = long("Keep this", budget / 2);
        let mut s = Scenario::new(budget)
            .system(&long("You", budget / 4))
            .user(&pinned)
            .pin("e1");
        for n in 0..6 {
            s = s
                .user(&format!("Fix src/file_{n}.rs"))
                .assistant(&long("Fixed", 40));
        }
        let mut s = s.user("Go on").build();
        for _ in 0..3 {
            s = s.build();
            assert!(s.appended().is_empty(), "{budget}: {:?}", s.appended());
        }
    }
}

/// linanwx/nagobot#84 and adolfousier/opencrabs#1378: the count left out the tools' definitions, so
/// compaction came after the provider had refused.
#[test]
fn tool_specs_count() {
    let mut spec = tool("search");
    spec["function"]["description"] = long("Searches", 400).into();
    let s = Scenario::new(1_000).specs(&[spec]);
    let s = (0..8).fold(s, |s, n| {
        s.user(&format!("Question {n}"))
            .assistant(&long("Answer", 80))
    });
    let s = s.user("Last").build();
    assert!(crate::common::count_body(s.body()) <= 1_000);
    assert_eq!(crate::common::count_body(s.body()), s.receipt().budget.used);
    assert!(s.receipt().tools[0].tokens > 400);
    // Without them it would have fitted without any compaction.
    assert!(s.receipt().excluded.iter().any(|x| x.rule != Rule::Kept));
}

/// MoonshotAI/kimi-cli#2165: one call whose arguments are no JSON stayed in the history, and every
/// later request of the session was refused.
#[test]
fn one_malformed_call_does_not_end_the_session() {
    for arguments in ["description\": \"x\"}", "", "[]", "{\"a\": \"cut o"] {
        for wire in [Wire::OpenAi, Wire::Anthropic, Wire::Responses] {
            let s = Scenario::new(2_000)
                .wire(wire)
                .user("Go")
                .message(Message::calls([ToolCall::new("call_1", "f", arguments)]))
                .result("call_1", "error: bad arguments")
                .user("Try again")
                .build();
            match wire {
                Wire::OpenAi => drop(check(&s)),
                Wire::Anthropic => drop(blocks(&s)),
                Wire::Responses => responses::check_body(s.bytes()),
            }
            // What the model wrote is still there to be read.
            let call = &s.messages()[1].tool_calls[0];
            let shown: Value = serde_json::from_str(&call.arguments).unwrap();
            assert!(arguments.is_empty() || shown["_invalid"] == arguments);
        }
    }
}

/// earendil-works/pi#1873: the time, to the second, stood in the system prompt, and no request ever
/// found the last one in the provider's cache.
#[test]
fn the_time_does_not_break_the_prefix() {
    let role = [Section::stable("role", "test", long("You are terse.", 200))];
    let mut s = Scenario::new(10_000);
    for n in 0..10 {
        s = s
            .user(&format!("Question {n}"))
            .sections(&role)
            .hints(json!({"time": format!("12:00:{n:02}")}))
            .build();
        let receipt = s.receipt();
        assert_eq!(receipt.cache.first_change, None);
        if n > 0 {
            let added: usize = receipt
                .items
                .iter()
                .rev()
                .take(3)
                .map(|item| item.tokens)
                .sum();
            assert!(receipt.cache.shared_prefix_tokens + added >= receipt.budget.used);
        }
        s = s.sent(None).assistant("Answer");
    }
}

/// MervinPraison/PraisonAI#1818: nothing set the summary apart from what the user says now, so the
/// model took up tasks that had long been done.
#[test]
fn a_summary_says_that_it_is_a_record() {
    let mut s = Scenario::new(4_000);
    for n in 0..24 {
        s = s
            .user(&format!("Delete src/file_{n}.rs now"))
            .assistant(&long("Deleted", 140));
    }
    let s = s.user("Thanks").build();
    let summary = &s.messages()[0];
    assert_eq!(s.receipt().items[0].rule, Rule::Summary);
    assert_eq!(summary.role, Role::User);
    let text = summary.text();
    assert!(text.starts_with("<summary>\n") && text.ends_with("\n</summary>"));
    assert!(text.contains("nothing in it is an instruction"));
}

/// langchain-ai/langchain#30376: an empty human message made trimming fail with an index out of
/// range.
#[test]
fn a_history_of_nothing_is_no_crash() {
    for wire in [Wire::OpenAi, Wire::Anthropic, Wire::Responses] {
        let s = Scenario::new(200)
            .wire(wire)
            .system("You are terse.")
            .user("")
            .build();
        assert_eq!(s.messages().len(), 1);
        let s = Scenario::new(200).wire(wire).build();
        assert_eq!(s.messages().len(), 0);
        let s = Scenario::new(200)
            .wire(wire)
            .assistant(" ")
            .result("x", "y")
            .build();
        assert_eq!(s.messages().len(), 0);
    }
}
