//! Examples for the help and the manual page of each command, in one table: a test parses each of them.

use clap::Command;

/// A command, and lines that somebody might type.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "ctx chat",
            "ctx build chat.json --budget 32k",
            "ctx run \"What does this project do?\"",
        ],
    ),
    (
        "run",
        &[
            "ctx run \"Why does the test fail?\" --model ollama:qwen3",
            "ctx run - --json < task.txt",
        ],
    ),
    (
        "chat",
        &[
            "ctx chat",
            "ctx chat \"Fix the test\" --model anthropic:claude-sonnet-4-5",
            "ctx chat --continue",
        ],
    ),
    ("acp", &["ctx acp --model anthropic:claude-sonnet-4-5"]),
    ("demo", &["ctx demo", "ctx demo --json"]),
    ("templates list", &["ctx templates list"]),
    (
        "templates show",
        &["ctx templates show summary > summary.md"],
    ),
    (
        "build",
        &[
            "ctx build chat.json --budget 32k",
            "ctx build chat.json --format openai > body.json",
            "ctx build sessions.jsonl --all --json > results.jsonl",
        ],
    ),
    ("update", &["ctx update chat.json --budget 32k --json"]),
    (
        "tokens",
        &[
            "ctx tokens chat.json --model gpt-4o",
            "echo Hello | ctx tokens --text",
        ],
    ),
    (
        "compose",
        &["ctx compose agent.json", "ctx compose agent.json --json"],
    ),
    (
        "agent-context",
        &["ctx agent-context --task task.json --locale zh"],
    ),
    ("sessions list", &["ctx sessions list"]),
    ("sessions show", &["ctx sessions show main --json"]),
    ("sessions append", &["ctx sessions append main chat.jsonl"]),
    ("sessions fork", &["ctx sessions fork main try --at 3f2a"]),
    ("sessions undo", &["ctx sessions undo main"]),
    ("sessions pin", &["ctx sessions pin main 3f2a"]),
    ("sessions unpin", &["ctx sessions unpin main 3f2a"]),
    (
        "sessions export",
        &["ctx sessions export main --format html -o main.html"],
    ),
    (
        "sessions import",
        &["ctx sessions import old session.jsonl"],
    ),
    ("sessions rm", &["ctx sessions rm try"]),
    ("inspect", &["ctx inspect main", "ctx inspect main --at 12"]),
    ("diff", &["ctx diff main 12 13"]),
    (
        "replay",
        &[
            "ctx replay main --verify",
            "ctx replay chat.json --budget 8k --compactor none",
        ],
    ),
    ("doctor", &["ctx doctor", "ctx doctor --fix"]),
    (
        "serve",
        &["ctx serve", "ctx serve --listen 127.0.0.1:0 --log json"],
    ),
    ("serve link", &["ctx serve link", "ctx serve link --revoke"]),
    (
        "agent create",
        &[
            "ctx agent create ada --backend goose --archetype service",
            "ctx agent create mine --backend own --command my-agent --acp",
        ],
    ),
    ("agent start", &["ctx agent start ada"]),
    (
        "agent prompt",
        &["ctx agent prompt ada \"Show the open orders.\""],
    ),
    ("agent cancel", &["ctx agent cancel ada"]),
    ("agent stop", &["ctx agent stop ada"]),
    ("agent restart", &["ctx agent restart ada"]),
    ("agent list", &["ctx agent list --json"]),
    ("agent show", &["ctx agent show ada"]),
    (
        "agent permit",
        &[
            "ctx agent permit ada",
            "ctx agent permit ada 8c1f0e22a9b4 allow",
        ],
    ),
    ("agent rm", &["ctx agent rm ada"]),
    ("agent backends", &["ctx agent backends"]),
    ("canvas show", &["ctx canvas show ada > page.html"]),
    ("canvas list", &["ctx canvas list"]),
    ("skills list", &["ctx skills list"]),
    ("skills show", &["ctx skills show release"]),
    ("model list", &["ctx model list"]),
    ("model pull", &["ctx model pull smollm2"]),
    ("model add", &["ctx model add qwen qwen3-4b-q4.gguf"]),
    ("model show", &["ctx model show qwen"]),
    ("model rm", &["ctx model rm qwen"]),
    ("trust", &["ctx trust", "ctx trust --list"]),
    ("mcp list", &["ctx mcp list"]),
    ("mcp tools", &["ctx mcp tools --model gpt-4o"]),
    ("mcp serve", &["ctx mcp serve --url http://127.0.0.1:4100"]),
    ("tool list", &["ctx tool list"]),
    (
        "tool call",
        &["ctx tool call canvas_update --arg html=Orders"],
    ),
    (
        "inject",
        &[
            "ctx inject --name ada --archetype employee",
            "ctx inject --meta agent.json --json",
        ],
    ),
    ("pool list", &["ctx pool list"]),
    (
        "pool add",
        &[
            "ctx pool add research --capability web_search:8",
            "ctx pool add --file resources.json",
        ],
    ),
    ("pool repair", &["ctx pool repair research"]),
    ("pool retire", &["ctx pool retire research"]),
    (
        "pool map",
        &["ctx pool map", "ctx pool map web_search search__query"],
    ),
    ("pool remove", &["ctx pool remove research"]),
    ("pool catalog", &["ctx pool catalog"]),
    ("pool match", &["ctx pool match web_search:5 shell_exec"]),
    ("pool key", &["ctx pool key research"]),
    ("pool revoke-key", &["ctx pool revoke-key research"]),
    ("pool grant", &["ctx pool grant research canvas"]),
    ("pool revoke", &["ctx pool revoke research canvas"]),
    (
        "task dispatch",
        &["ctx task dispatch \"Write the report\" --requires file_ops --wait"],
    ),
    ("task list", &["ctx task list --state running"]),
    ("task show", &["ctx task show task-1 --wait"]),
    ("task cancel", &["ctx task cancel task-1"]),
    (
        "worker",
        &[
            "ctx worker --capability shell_exec",
            "ctx worker --id research --command ./research.sh",
        ],
    ),
    (
        "orchestrate",
        &["ctx orchestrate \"Compare the two papers\" --max-tokens 200k"],
    ),
    (
        "config show",
        &[
            "ctx config show",
            "ctx config show --model ollama:qwen3 --json",
        ],
    ),
    (
        "config schema",
        &["ctx config schema > contexture.schema.json"],
    ),
    (
        "schema",
        &["ctx schema", "ctx schema build > build.schema.json"],
    ),
    (
        "events",
        &[
            "ctx events --since 2h --type task:",
            "ctx events --follow --json",
        ],
    ),
    ("completions", &["ctx completions bash > ctx.bash"]),
    ("man", &["ctx man | man -l -", "ctx man man1"]),
];

/// The command with the examples of all that it has.
pub fn add(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (path, lines)| {
        let lines = lines.iter().map(|line| format!("\n  {line}"));
        let help = format!("Examples:{}", lines.collect::<String>());
        let names: Vec<&str> = path.split_whitespace().collect();
        described(command, &names, help)
    })
}

fn described(command: Command, path: &[&str], help: String) -> Command {
    let Some((first, rest)) = path.split_first() else {
        return command.after_help(help);
    };
    if command.find_subcommand(first).is_none() {
        return command;
    }
    command.mut_subcommand(first, |inner| described(inner, rest, help))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::args;

    /// All commands that do something.
    fn leaves(command: &Command, path: &str, found: &mut BTreeSet<String>) {
        let shown = |inner: &&Command| !inner.is_hide_set() && inner.get_name() != "help";
        let inner: Vec<&Command> = command.get_subcommands().filter(shown).collect();
        if !path.is_empty() && (inner.is_empty() || !command.is_subcommand_required_set()) {
            found.insert(path.to_owned());
        }
        for inner in inner {
            let path = format!("{path} {}", inner.get_name());
            leaves(inner, path.trim(), found);
        }
    }

    /// The words of a line, as a shell has them, up to where another program begins.
    fn words(line: &str) -> Vec<String> {
        let line = line.split(" | man").next().unwrap();
        let line = line.rsplit("| ctx ").next().map_or(line, |last| last);
        let line = line.split(['>', '<']).next();
        let line = line.unwrap().trim_start_matches("ctx ");
        let mut words = vec!["ctx".to_owned()];
        for (n, quoted) in line.split('"').enumerate() {
            match n % 2 {
                0 => words.extend(quoted.split_whitespace().map(str::to_owned)),
                _ => words.push(quoted.to_owned()),
            }
        }
        words
    }

    #[test]
    fn every_command_has_an_example_that_is_right() {
        let mut expected = BTreeSet::new();
        leaves(&args::command(), "", &mut expected);
        let given: BTreeSet<String> = EXAMPLES
            .iter()
            .map(|(path, _)| (*path).to_owned())
            .collect();
        let missing: Vec<_> = expected.difference(&given).collect();
        assert!(
            missing.is_empty(),
            "no example in args/examples.rs for: {missing:?}"
        );
        for (path, lines) in EXAMPLES {
            assert!(
                path.is_empty() || expected.contains(*path),
                "there is no `ctx {path}`"
            );
            for line in *lines {
                assert!(
                    line.contains(&format!("ctx {path}")),
                    "{line} shows another command"
                );
                let read = args::parse(words(line));
                assert!(read.is_ok(), "{line}: {}", read.unwrap_err());
            }
        }
    }
}
