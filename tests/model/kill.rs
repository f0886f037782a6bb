//! `kill -9` in the middle of a pull, and of adding.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use contexture_model::weights::{self, PipSettings, Shelf};

use crate::model::index_server::Serve;
use crate::model::scene::{Scene, known, model, runtime};

/// How long anything may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// The process that is killed: this test again, told so by its environment.
const SHELF: &str = "CONTEXTURE_TEST_KILLED_SHELF";
const INDEX: &str = "CONTEXTURE_TEST_KILLED_INDEX";

#[test]
fn a_pull_that_was_killed_is_gone_on_with() {
    if let (Some(shelf), Ok(index)) = (std::env::var_os(SHELF), std::env::var(INDEX)) {
        let pip = PipSettings {
            indexes: vec![index],
            ..PipSettings::default()
        };
        let (shelf, known) = (Shelf::new(shelf), known(&model(300_000)));
        let pulled = runtime().block_on(weights::pull(&shelf, &known, &pip, &mut |_| {}));
        pulled.unwrap();
        return;
    }
    let scene = Scene::with(|index| index.serves(vec![Serve::Drips(500); 3]));
    let mut came = 0;
    let (_, module) = module_path!().split_once("::").unwrap();
    let this_test = format!("{module}::a_pull_that_was_killed_is_gone_on_with");
    for _ in 0..3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &this_test])
            .env(SHELF, scene.shelf.folder())
            .env(INDEX, scene.server.url())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while scene.come() < came + 10_000 {
            assert!(start.elapsed() < PATIENCE, "nothing more comes");
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What has come stays, and is not taken for a model.
        assert!(scene.come() >= came + 10_000);
        came = scene.come();
        assert_eq!(scene.shelf.get("tiny").unwrap(), None);
        assert_eq!(scene.shelf.list().unwrap().damaged, []);
    }
    scene.whole(&scene.pull().unwrap());
    let ranges = scene.server.ranges();
    assert_eq!(ranges.len(), 4);
    let begun = ranges.into_iter().map(|range| match range {
        None => 0,
        Some(range) => range["bytes=".len()..range.len() - 1].parse().unwrap(),
    });
    let begun: Vec<u64> = begun.collect();
    assert!(begun.is_sorted_by(|a, b| a < b), "{begun:?}");
    assert_eq!(begun[3], came);
}
