//! The folder with model files.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use contexture_model::weights::{Progress, Shelf, Taken, Weights, WeightsError};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::model::scene::{model, sha256};

struct Place {
    folder: TempDir,
    shelf: Shelf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(folder.path().join("cache/models"));
        Self { folder, shelf }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn add(&self, name: &str, file: &Path) -> Result<Weights, WeightsError> {
        self.shelf.add(name, file, Taken::Refuse, &mut |_| {})
    }

    /// A model that is there.
    fn with_model(&self) -> Weights {
        let file = self.file("a.gguf", &model(50_000));
        self.add("a", &file).unwrap()
    }

    /// What is wrong with the model that is there.
    #[track_caller]
    fn damage(&self) -> String {
        let stock = self.shelf.list().unwrap();
        assert_eq!(
            (stock.whole.len(), stock.damaged.len()),
            (0, 1),
            "{stock:?}"
        );
        let error = self.shelf.get("a").unwrap_err();
        assert!(error.hint().contains("ctx model rm a"), "{error:?}");
        stock.damaged[0].what.clone()
    }
}

#[test]
fn a_file_is_taken_in_as_a_second_name_of_it() {
    let place = Place::new();
    assert_eq!(place.shelf.list().unwrap().whole, []);
    assert_eq!(place.shelf.get("a").unwrap(), None);
    assert!(!place.shelf.folder().exists());
    let bytes = model(50_000);
    let file = place.file("own.gguf", &bytes);
    let weights = place.add("a", &file).unwrap();
    assert_eq!(weights.sha256, sha256(&bytes));
    assert_eq!(weights.bytes, 50_000);
    assert_eq!(PathBuf::from(&weights.source), file.canonicalize().unwrap());
    assert_eq!(
        weights.path.metadata().unwrap().ino(),
        file.metadata().unwrap().ino()
    );
    assert_eq!(place.shelf.get("a").unwrap(), Some(weights.clone()));
    assert_eq!(
        place.shelf.list().unwrap().whole,
        std::slice::from_ref(&weights)
    );
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(place.shelf.folder()), 0o700);
    assert_eq!(mode(&place.shelf.folder().join("a.json")), 0o600);
    place.shelf.remove("a").unwrap();
    assert_eq!(place.shelf.get("a").unwrap(), None);
    assert!(matches!(
        place.shelf.remove("a"),
        Err(WeightsError::Missing { .. })
    ));
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

#[test]
fn a_file_of_another_disk_is_copied() {
    let Some(elsewhere) = other_disk() else {
        println!("skipped: there is no second file system to write to");
        return;
    };
    let place = Place::new();
    let bytes = model(700_000);
    let file = elsewhere.path().join("own.gguf");
    std::fs::write(&file, &bytes).unwrap();
    let mut told = Vec::new();
    let weights = place
        .shelf
        .add("a", &file, Taken::Refuse, &mut |progress| {
            told.push(progress);
        })
        .unwrap();
    assert_eq!(std::fs::read(&weights.path).unwrap(), bytes);
    assert_eq!(weights.sha256, sha256(&bytes));
    let total = 700_000;
    assert_eq!(told.last(), Some(&Progress::Copying { done: total, total }));
    assert_eq!(weights.path.metadata().unwrap().mode() & 0o777, 0o600);
    assert!(!place.shelf.folder().join("partial/a.new").exists());
}

/// A folder on another file system than the temporary folder's.
fn other_disk() -> Option<TempDir> {
    let here = std::env::temp_dir().metadata().unwrap().dev();
    let places = ["/dev/shm", "/run", env!("CARGO_MANIFEST_DIR")];
    places.iter().find_map(|place| {
        let other = Path::new(place)
            .metadata()
            .is_ok_and(|about| about.dev() != here);
        other.then(|| tempfile::tempdir_in(place).ok())?
    })
}

#[test]
fn a_link_is_followed_and_what_is_no_file_is_refused() {
    let place = Place::new();
    let file = place.file("own.gguf", &model(20_000));
    let link = place.folder.path().join("link.gguf");
    symlink(&file, &link).unwrap();
    let weights = place.add("a", &link).unwrap();
    assert!(weights.path.symlink_metadata().unwrap().is_file());
    let pipe = place.folder.path().join("pipe.gguf");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    for odd in [place.folder.path(), Path::new("/dev/zero"), &pipe] {
        let error = place.add("b", odd).unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }
    for bytes in [
        b"".as_slice(),
        b"GGU",
        b"PK\x03\x04 and so on",
        &model(5_000),
    ] {
        let odd = place.file("odd", bytes);
        let error = place.add("b", &odd).unwrap_err();
        assert!(matches!(error, WeightsError::NoModel(_)), "{error:?}");
        let (words, file) = (error.to_string(), odd.display().to_string());
        assert!(words.starts_with(&file), "{words}");
        assert!(!place.shelf.folder().join("partial/b.new").exists());
    }
    let missing = place.add("b", Path::new("/nowhere/x.gguf")).unwrap_err();
    assert!(matches!(missing, WeightsError::Io { .. }));
    assert_eq!(place.shelf.get("b").unwrap(), None);
}

#[test]
fn a_name_that_is_taken_is_kept_unless_it_is_replaced() {
    let place = Place::new();
    let first = place.with_model();
    let other = place.file("b.gguf", &model(60_000));
    let refused = place.add("a", &other).unwrap_err();
    assert!(matches!(refused, WeightsError::Taken { .. }));
    assert!(refused.hint().contains("--force"));
    assert_eq!(place.shelf.get("a").unwrap(), Some(first));
    let replace = |file: &Path| place.shelf.add("a", file, Taken::Replace, &mut |_| {});
    let second = replace(&other).unwrap();
    assert_eq!(second.bytes, 60_000);
    // Also by itself: two names of one file.
    let again = replace(&second.path).unwrap();
    assert_eq!(again.sha256, second.sha256);
    assert_eq!(place.shelf.list().unwrap().whole, [again]);
    assert!(!place.shelf.folder().join("partial/a.new").exists());
}

#[test]
fn what_does_not_fit_its_record_is_damaged() {
    type Harm = fn(&Path, &Path);
    let harms: [(&str, Harm); 9] = [
        ("no record", |_, json| std::fs::remove_file(json).unwrap()),
        ("is gone", |gguf, _| std::fs::remove_file(gguf).unwrap()),
        ("its record", |_, json| std::fs::write(json, "{").unwrap()),
        ("its record", |_, json| {
            std::fs::write(json, vec![b' '; 100_000]).unwrap();
        }),
        ("no regular file", |_, json| {
            std::fs::remove_file(json).unwrap();
            symlink("/dev/zero", json).unwrap();
        }),
        ("no regular file", |gguf, _| {
            let moved = gguf.with_extension("moved");
            std::fs::rename(gguf, &moved).unwrap();
            symlink(moved, gguf).unwrap();
        }),
        ("and had 50000", |gguf, _| {
            std::fs::write(gguf, b"GGUF").unwrap();
        }),
        ("content has changed", |gguf, _| {
            std::fs::write(gguf, vec![1; 50_000]).unwrap();
        }),
        ("that of `b`", |_, json| {
            let text = std::fs::read_to_string(json).unwrap();
            std::fs::write(json, text.replace("\"a\"", "\"b\"")).unwrap();
        }),
    ];
    for (words, harm) in harms {
        let place = Place::new();
        let path = place.with_model().path;
        harm(&path, &path.with_extension("json"));
        let what = place.damage();
        assert!(what.contains(words), "{what}");
        // It can be removed, or replaced.
        let other = place.file("b.gguf", &model(60_000));
        assert!(matches!(
            place.add("a", &other),
            Err(WeightsError::Taken { .. })
        ));
        place.shelf.remove("a").unwrap();
        assert_eq!(place.shelf.get("a").unwrap(), None);
        place.add("a", &other).unwrap();
    }
}

#[test]
fn a_file_that_was_only_touched_is_whole() {
    let place = Place::new();
    let weights = place.with_model();
    let later = SystemTime::now() + Duration::from_secs(100);
    let file = std::fs::File::options()
        .write(true)
        .open(&weights.path)
        .unwrap();
    file.set_modified(later).unwrap();
    let record = || std::fs::read_to_string(weights.path.with_extension("json")).unwrap();
    let before = record();
    assert_eq!(place.shelf.get("a").unwrap(), Some(weights.clone()));
    // And it is noted, so that it is not read again.
    assert_ne!(record(), before);
    assert_eq!(place.shelf.get("a").unwrap(), Some(weights.clone()));
}

#[test]
fn other_files_in_the_folder_do_not_matter() {
    let place = Place::new();
    let weights = place.with_model();
    for name in [
        "README",
        "B.gguf",
        ".x.gguf",
        "x y.json",
        "a.gguf.bak",
        "ä.gguf",
    ] {
        std::fs::write(place.shelf.folder().join(name), "x").unwrap();
    }
    let stock = place.shelf.list().unwrap();
    assert_eq!(stock.whole, [weights]);
    assert_eq!(stock.damaged, []);
}

#[test]
fn a_name_that_another_process_works_on_is_left_alone() {
    let place = Place::new();
    let weights = place.with_model();
    let lock = place.shelf.folder().join("partial/a.lock");
    let lock = std::fs::File::options().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    let other = place.file("b.gguf", &model(60_000));
    let busy = place.shelf.add("a", &other, Taken::Replace, &mut |_| {});
    assert!(matches!(busy, Err(WeightsError::Busy { .. })));
    assert!(matches!(
        place.shelf.remove("a"),
        Err(WeightsError::Busy { .. })
    ));
    assert_eq!(place.shelf.get("a").unwrap(), Some(weights));
    place.add("b", &other).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What is no name is refused before there is a path of it; what is one stays in the folder.
    #[test]
    fn names_are_what_the_rule_says(name in "[a-zA-Z0-9._/ä\\\\ -]{0,70}|\\.\\.(/\\.\\.)*|[a-z0-9._-]{1,64}") {
        let place = Place::new();
        let file = place.file("own.gguf", &model(20_000));
        let right = (1..=64).contains(&name.len())
            && !name.starts_with('.')
            && name.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '.' | '-' | '_'));
        match place.add(&name, &file) {
            Ok(weights) => {
                prop_assert!(right);
                prop_assert_eq!(weights.path.parent(), Some(place.shelf.folder()));
                prop_assert_eq!(place.shelf.list().unwrap().whole, [weights]);
            }
            Err(error) => {
                prop_assert!(!right, "{}", error);
                prop_assert!(error.to_string().contains("`a-z`, `0-9`"));
                prop_assert!(!place.shelf.folder().exists());
                let got = place.shelf.get(&name).map(|_| ()).unwrap_err();
                let removed = place.shelf.remove(&name).unwrap_err();
                prop_assert_eq!((got.code(), removed.code()), ("BadName", "BadName"));
            }
        }
    }

    /// However a record is garbled, the model is whole or damaged, and nothing breaks.
    #[test]
    fn no_record_breaks_the_list(at in 0_usize..300, cut: bool, byte: u8) {
        let place = Place::new();
        let weights = place.with_model();
        let json = weights.path.with_extension("json");
        let mut bytes = std::fs::read(&json).unwrap();
        let at = at % bytes.len();
        match cut {
            true => bytes.truncate(at),
            false => bytes[at] = byte,
        }
        std::fs::write(&json, bytes).unwrap();
        let stock = place.shelf.list().unwrap();
        prop_assert_eq!(stock.whole.len() + stock.damaged.len(), 1);
    }
}
