//! 52: numbers at their extremes are refused with their range, and a project widens no limit of the user's.

use serde_json::{Value, json};

use super::agent::{Scene, calls, says};
use crate::common::{Project, ctx};

/// A number of the configuration: its path, and its schema.
struct Number {
    path: Vec<String>,
    schema: Value,
}

impl Number {
    fn all() -> Vec<Self> {
        let schema = ctx(&["config", "schema"]).json();
        let mut all = Vec::new();
        collect(&mut Vec::new(), &schema, &mut all);
        assert!(all.len() > 20);
        all
    }

    fn least(&self) -> &Value {
        &self.schema["minimum"]
    }

    fn most(&self) -> &Value {
        &self.schema["maximum"]
    }

    /// A configuration in which it is `value`, as JSON has it.
    fn document(&self, value: &str) -> String {
        let needed = match self.path[0].as_str() {
            "hooks" => r#""event":"x:*","command":["true"],"#,
            "providers" => r#""name":"p","file":"NOTES.md","#,
            "mcpServers" => r#""command":"true","disabled":true,"#,
            _ => "",
        };
        let mut text = value.to_owned();
        for (n, name) in self.path.iter().enumerate().rev() {
            text = match name.as_str() {
                "[]" => format!("[{text}]"),
                "*" => format!("{{\"any\":{text}}}"),
                name if n + 1 == self.path.len() => format!("{{{needed}\"{name}\":{text}}}"),
                name => format!("{{\"{name}\":{text}}}"),
            };
        }
        text
    }

    fn is_whole(&self) -> bool {
        self.schema["type"] == "integer"
    }
}

fn collect(path: &mut Vec<String>, schema: &Value, all: &mut Vec<Number>) {
    if matches!(schema["type"].as_str(), Some("integer" | "number")) {
        all.push(Number {
            path: path.clone(),
            schema: schema.clone(),
        });
    }
    let members = schema["properties"].as_object().into_iter().flatten();
    let members = members.map(|(name, inner)| (name.as_str(), inner));
    let free = [
        ("[]", &schema["items"]),
        ("*", &schema["additionalProperties"]),
    ];
    for (name, inner) in members.chain(free) {
        if inner.is_object() {
            path.push(name.to_owned());
            collect(path, inner, all);
            path.pop();
        }
    }
}

/// Values that only make sense together with another one.
fn needs_another(path: &str, value: &Value) -> bool {
    match path {
        "context.reservedOutput" => *value != json!(0),
        "context.triggerPercent" => *value == json!(1),
        "context.targetPercent" => *value == json!(99),
        _ => false,
    }
}

#[test]
fn every_number_of_the_configuration_is_checked_where_it_is_read() {
    let project = Project::new();
    for number in Number::all() {
        let path = number.path.join(".");
        let load = |value: &str, args: &[&str]| {
            project.write("contexture.json", number.document(value));
            project
                .ctx(args)
                .input(r#"[{"role":"user","content":"hi"}]"#)
        };
        for value in [number.least(), number.most()] {
            let text = value.to_string();
            // `agent list` opens a fleet with all that it is given; `build` makes a request.
            for args in [&["agent", "list"][..], &["build"]] {
                let output = load(&text, args).env("CONTEXTURE_TRUST", "1").run();
                let stderr = String::from_utf8_lossy(&output.stderr);
                assert!(!stderr.contains("panicked"), "{path} = {value}: {stderr}");
                let code = output.status.code();
                let expected: &[i32] = match (needs_another(&path, value), args[0]) {
                    (true, _) => &[3],
                    // A request may be too long for the least budget.
                    (false, "build") => &[0, 4],
                    (false, _) => &[0],
                };
                assert!(
                    expected.contains(&code.unwrap_or(-1)),
                    "{path} = {value}: {code:?} {stderr}"
                );
            }
        }
        let below = number.least().as_i64().unwrap() - 1;
        let above = number.most().as_f64().unwrap() + 1.0;
        let mut wrong = vec![
            below.to_string(),
            format!("{above}"),
            "-1000000000000".to_owned(),
            u64::MAX.to_string(),
            "1e300".to_owned(),
            "\"1\"".to_owned(),
            "null".to_owned(),
        ];
        if number.is_whole() {
            wrong.extend(["1.5".to_owned(), "1e2".to_owned()]);
        }
        if number.least().as_i64() == Some(1) {
            wrong.push("0".to_owned());
        }
        for value in wrong {
            let last = number.path.last().unwrap();
            let (printed, said) = load(&value, &["build"]).ends(3);
            assert!(
                printed.is_empty() && said.contains(last),
                "{path} = {value}: {said}"
            );
            assert!(said.contains("contexture.json"), "{path} = {value}: {said}");
            if value.parse::<i64>().is_ok() {
                let plain = |value: &Value| value.as_f64().unwrap();
                let range = format!("from {} to {}", plain(number.least()), plain(number.most()));
                assert!(said.contains(&range), "{path} = {value}: {said}");
                assert!(
                    path.contains("priority") || said.contains(&format!("not {value}")),
                    "{said}"
                );
            }
        }
        // JSON itself has no such number.
        load("1e400", &["build"]).failure(3, "number out of range");
    }
}

#[test]
fn every_number_of_the_command_line_is_checked() {
    let project = Project::new();
    let flags: [(&[&str], &str, &str, &str); 12] = [
        (&["build"], "--budget", "1", "1000000000"),
        (&["build"], "--reserve", "0", "127999"),
        (&["build"], "--max-messages", "1", "1000000"),
        (&["build"], "--max-bytes", "1", "1073741824"),
        (&["build"], "--line", "1", "1"),
        (&["replay"], "--line", "1", "1"),
        (&["task", "dispatch", "x"], "--timeout", "1", "604800"),
        (&["task", "dispatch", "x"], "--attempts", "1", "100"),
        (
            &["task", "dispatch", "x"],
            "--max-tokens",
            "0",
            "1000000000000",
        ),
        (&["task", "dispatch", "x"], "--max-cost", "0", "1000000000"),
        (
            &["task", "dispatch", "x"],
            "--priority",
            "-9223372036854775808",
            "9223372036854775807",
        ),
        (&["run", "x", "--model", "openai:x"], "--max-steps", "", ""),
    ];
    for (command, flag, least, most) in flags {
        let run = |value: &str| {
            let flag = format!("{flag}={value}");
            let all = [command, &[flag.as_str()]].concat();
            project
                .ctx(&all)
                .input("{\"role\":\"user\",\"content\":\"hi\"}\n")
                .run()
        };
        for value in [least, most].into_iter().filter(|value| !value.is_empty()) {
            let output = run(value);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(!stderr.contains("panicked"), "{flag}={value}: {stderr}");
            assert!(
                matches!(output.status.code(), Some(0 | 4)),
                "{flag}={value}: {stderr}"
            );
        }
        let beyond = "99999999999999999999999";
        let mut wrong = vec!["1e400", "-1.5", "x", "", beyond, "nan", "inf"];
        if flag != "--priority" {
            wrong.extend(["-1", "18446744073709551615"]);
        }
        if least == "1" || flag == "--max-steps" {
            wrong.push("0");
        }
        for value in wrong {
            let output = run(value);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{flag}={value}: {stderr}");
        }
    }
    let said = project
        .ctx(&["build", "--budget", "0"])
        .failure(2, "must be a whole number from 1 to 1000000000");
    assert!(said.contains("--budget"), "{said}");
}

/// A user with limits of their own, and a project that wants more.
fn limited() -> Scene {
    let endless = |_| calls("c", "skills_list", json!({}));
    let scene = Scene::new((0..8).map(endless).chain([says("Done.")]));
    let own = scene.home.path().join(".config/contexture");
    std::fs::create_dir_all(&own).unwrap();
    let mine = json!({
        "agent": {"maxSteps": 3}, "context": {"maxInputTokens": 50_000},
        "shell": {"network": false, "writable": []}, "toolPolicy": {"allowedTools": ["skills_list"]},
    });
    std::fs::write(own.join("contexture.json"), mine.to_string()).unwrap();
    let theirs = json!({
        "agent": {"maxSteps": 7}, "context": {"maxInputTokens": 90_000},
        "shell": {"network": true, "writable": ["/"]}, "toolPolicy": {"allowedTools": ["exec_shell", "skills_list"]},
    });
    scene.project.write("contexture.json", theirs.to_string());
    scene
}

#[test]
fn a_project_widens_no_limit_of_the_users_trusted_or_not() {
    for trust in ["", "1"] {
        let scene = limited();
        let run = scene
            .run("openai:x", &["hi"])
            .env("CONTEXTURE_TRUST", trust);
        run.ends(1);
        assert_eq!(scene.server.seen().len(), 3, "trust {trust:?}");
        let body: Value = serde_json::from_str(&scene.sent(0)).unwrap();
        let tools: Vec<&str> = body["tools"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|tool| tool["function"]["name"].as_str())
            .collect();
        assert_eq!(tools, ["skills_list"], "trust {trust:?}");
        let built = scene
            .ctx(&["build", "--json"])
            .env("CONTEXTURE_TRUST", trust);
        let built = built.input(r#"[{"role":"user","content":"hi"}]"#).json();
        assert_eq!(built["receipt"]["budget"]["maxInputTokens"], 50_000);
    }
}

#[test]
fn a_project_may_narrow() {
    let scene = limited();
    let narrow = json!({"agent": {"maxSteps": 2}, "context": {"maxInputTokens": 40_000}});
    scene.project.write("contexture.json", narrow.to_string());
    scene.run("openai:x", &["hi"]).ends(1);
    assert_eq!(scene.server.seen().len(), 2);
}

#[test]
fn what_a_project_raises_above_a_dangerous_default_needs_trust() {
    let project = Project::new();
    let raised = json!({"agent": {"maxSteps": 500}, "serve": {"tokenHours": 25, "askSeconds": 60}});
    project.write("contexture.json", raised.to_string());
    let said = project.ctx(&["trust"]).failure(5, "nobody to ask");
    assert!(said.contains("runs with agent.maxSteps = 500"), "{said}");
    assert!(said.contains("runs with serve.tokenHours = 25"), "{said}");
    assert!(!said.contains("askSeconds"), "{said}");
}
