//! One hostile folder of thousands: what is in it follows from its number alone.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::config::{self, Key};
use super::forms::Form;
use super::plants::{self, Bait, FOLDERS, NAMES, Plant};

/// What is hostile in a folder, beside what is in all of them.
#[derive(Clone)]
pub struct Variant {
    pub name: String,
    pub config: Option<String>,
    /// What is below `.contexture`, or beside it, in another form than a plain file's.
    pub odd: Vec<(String, Form)>,
    /// Whether somebody holds the lock of a daemon.
    pub held: bool,
}

/// Files beside `.contexture` that are tried in each form, too.
const BESIDE: [&str; 6] = [
    "../contexture.json",
    "../AGENTS.md",
    "../Agent.md",
    "../.agents/skills",
    "../.agents/skills/pdf/SKILL.md",
    "../.git",
];

impl Variant {
    fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            config: None,
            odd: Vec::new(),
            held: false,
        }
    }

    /// The folders in which every command is tried.
    pub fn whole(keys: &[Key], bait: &Bait) -> Vec<Self> {
        let linked = |name: &str, form| Self {
            odd: vec![(String::new(), form)],
            ..Self::new(name)
        };
        vec![
            Self {
                config: Some(config::everything(keys, bait)),
                ..Self::new("everything plain")
            },
            linked(".contexture is a link", Form::Link),
            Self {
                held: true,
                ..Self::new("a daemon's lock is held")
            },
        ]
    }

    /// All files in one form, and each folder as a link, for the commands that act.
    pub fn telling(bait: &Bait) -> Vec<Self> {
        let files = |form| {
            plants::data(bait)
                .into_iter()
                .map(move |plant| (plant.path.to_owned(), form))
        };
        let formed = Form::ALL.map(|form| Self {
            odd: files(form).collect(),
            ..Self::new(format!("every file as {form:?}"))
        });
        let links = FOLDERS
            .into_iter()
            .flat_map(|folder| [Form::Link, Form::Dangling].map(|form| (folder, form)));
        let linked = links.map(|(folder, form)| Self {
            odd: vec![(folder.to_owned(), form)],
            ..Self::new(format!(".contexture/{folder} as {form:?}"))
        });
        formed.into_iter().chain(linked).collect()
    }

    /// Each key at each value, and each file and folder in each form, one at a time.
    pub fn single(keys: &[Key], bait: &Bait) -> Vec<Self> {
        let configured = |(name, text): (String, String)| Self {
            config: Some(text),
            ..Self::new(name)
        };
        let mut all: Vec<Self> = config::one_by_one(keys, bait)
            .into_iter()
            .map(configured)
            .collect();
        all.extend(config::shapes(bait).into_iter().map(configured));
        let files: Vec<&str> = plants::data(bait)
            .into_iter()
            .map(|plant| plant.path)
            .collect();
        for path in files.iter().chain(&FOLDERS).chain(&BESIDE) {
            for form in Form::ALL {
                let name = format!(".contexture/{path} as {form:?}");
                all.push(Self {
                    odd: vec![((*path).to_owned(), form)],
                    ..Self::new(name)
                });
            }
        }
        all
    }

    /// One that has several oddities at once.
    pub fn drawn(number: u64, keys: &[Key], bait: &Bait) -> Self {
        let mut rng = fastrand::Rng::with_seed(number);
        let files: Vec<&str> = plants::data(bait)
            .into_iter()
            .map(|plant| plant.path)
            .chain(FOLDERS)
            .chain(BESIDE)
            .collect();
        let odd = (0..rng.usize(0..5)).map(|_| {
            let path = files[rng.usize(..files.len())];
            (path.to_owned(), Form::ALL[rng.usize(..Form::ALL.len())])
        });
        Self {
            odd: odd.collect(),
            config: rng.bool().then(|| config::drawn(keys, bait, &mut rng)),
            held: rng.u8(..) < 16,
            ..Self::new(format!("number {number}"))
        }
    }

    /// Puts it at `root`, which is not there yet.
    pub fn plant(&self, root: &Path, bait: &Bait) {
        fs::create_dir(root).unwrap();
        for plant in plants::around(bait) {
            write(root, &plant);
        }
        data(&root.join(".contexture"), bait);
        for name in NAMES {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}\n").unwrap();
        }
        if let Some(text) = &self.config {
            fs::write(root.join("contexture.json"), text).unwrap();
        }
        for (path, form) in &self.odd {
            let here = match path.strip_prefix("../") {
                Some(beside) => root.join(beside),
                None => plants::place(root, path),
            };
            let twin = match path.strip_prefix("../") {
                Some(beside) => bait.outside.join("beside").join(beside),
                None => plants::place(&bait.outside, path),
            };
            // An earlier oddity may have taken its folder.
            if here.parent().is_some_and(|folder| {
                folder
                    .canonicalize()
                    .is_ok_and(|real| real.starts_with(root))
            }) {
                form.take(&here, &twin);
            }
        }
    }
}

/// Writes the plain `.contexture`.
fn data(folder: &Path, bait: &Bait) {
    for plant in plants::data(bait) {
        write(folder, &plant);
    }
}

fn write(folder: &Path, plant: &Plant) {
    let path = folder.join(plant.path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, &plant.text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(plant.mode)).unwrap();
}

/// Makes what links lead to: the same files again, where nobody may open or change them.
pub fn outside(bait: &Bait) {
    let _ = fs::remove_dir_all(&bait.outside);
    fs::create_dir_all(&bait.outside).unwrap();
    data(&bait.outside.join(".contexture"), bait);
    for plant in plants::around(bait) {
        write(&bait.outside.join("beside"), &plant);
    }
    fs::write(bait.outside.join("secret.txt"), plants::OUTSIDE).unwrap();
    fs::write(bait.outside.join("beside/contexture.json"), "{}").unwrap();
    fs::write(bait.outside.join("beside/AGENTS.md"), plants::OUTSIDE).unwrap();
}
