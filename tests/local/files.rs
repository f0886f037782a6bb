use crate::local::Machine;
use crate::small_model::weights;

// needs: model
#[test]
fn a_damaged_file_is_refused_and_nothing_is_left_of_it() {
    let Some(machine) = Machine::without() else {
        return;
    };
    let whole = std::fs::read(weights().unwrap()).unwrap();
    let half = machine
        .project
        .write("half.gguf", &whole[..whole.len() / 2]);
    let half = half.to_str().unwrap();
    machine
        .ctx(&["model", "add", "half", half])
        .failure(3, "bytes early");
    let listed = machine.ctx(&["model", "list"]).success();
    assert!(!listed.contains("half"), "{listed}");
}

// needs: model
#[test]
fn a_file_that_ends_the_engine_ends_another_process() {
    let Some(machine) = Machine::without() else {
        return;
    };
    let mut bytes = std::fs::read(weights().unwrap()).unwrap();
    // The header stays in order; the merges of the vocabulary no longer fit its tokens.
    let merges = b"tokenizer.ggml.merges";
    let at = bytes
        .windows(merges.len())
        .position(|window| window == merges)
        .unwrap();
    bytes[at + 200..at + 4_000].fill(b'x');
    let odd = machine.project.write("odd.gguf", &bytes);
    let output = machine
        .ctx(&["model", "add", "odd", odd.to_str().unwrap()])
        .run();
    let code = output.status.code();
    // Refused, or good enough to say a word: never a crash of ours.
    assert!(matches!(code, Some(0 | 3)), "{output:?}");
}

// needs: model
#[test]
fn who_has_no_model_and_no_network_is_told_the_other_ways() {
    let Some(machine) = Machine::without() else {
        return;
    };
    let alone = |args: &[&str]| {
        machine
            .ctx(args)
            .env("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
            .env("PIP_CONFIG_FILE", "/dev/null")
            .env("PIP_FIND_LINKS", "")
    };
    for args in [&["run", "Hello?"][..], &["model", "pull"]] {
        let told = alone(args).failure(1, "smollm2");
        for other in ["ctx model add", "ollama:", "openai:", "anthropic:"] {
            assert!(told.contains(other), "{other} in {told}");
        }
    }
    alone(&["run", "Hello?", "--model", "local:nobody"]).failure(2, "ctx model list");
}

// needs: model
#[test]
fn too_little_memory_is_said_before_it_is_taken() {
    let Some(machine) = Machine::new() else {
        return;
    };
    // A limit that holds for the process, as a container has one.
    let run = machine.ctx(&["run", "Hello?"]).command();
    let program = run.get_program().to_str().unwrap().to_owned();
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -v 400000 && exec \"$0\" run Hello?", &program]);
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let output = limited
        .current_dir(machine.project.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("memory"), "{told}");
}
