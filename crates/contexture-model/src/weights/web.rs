use std::fmt;
use std::time::Duration;

use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Proxy, Response, Url};

use super::{PipSettings, WeightsError};
use crate::client::innermost;
use crate::mask;

/// How often an answer may send us elsewhere.
const HOPS: usize = 5;
/// Time limit for connecting to a server: there are others.
const MAX_CONNECTING: Duration = Duration::from_secs(15);
/// The most bytes of a file with certificates.
const MOST_OF_CERT: u64 = 16 << 20;

/// An address, and what lets us in there. The two are kept apart, so that one can be shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    url: Url,
    /// User and password, as they stood in the address.
    login: Option<(String, Option<String>)>,
}

impl Address {
    /// Reads an address: of a server or of a file, and of nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        Self::of(Url::parse(text).ok()?)
    }

    fn of(mut url: Url) -> Option<Self> {
        if !matches!(url.scheme(), "http" | "https" | "file") {
            return None;
        }
        let user = decoded(url.username());
        let password = url.password().map(decoded);
        let login = (!user.is_empty() || password.is_some()).then_some((user, password));
        if login.is_some() {
            url.set_username("").ok()?;
            url.set_password(None).ok()?;
        }
        Some(Self { url, login })
    }

    /// Where a link on this page leads. What lets us in here does so on the same server only, and no
    /// server leads to our files.
    pub fn join(&self, link: &str) -> Option<Self> {
        let mut to = Self::of(self.url.join(link).ok()?)?;
        if to.url.scheme() == "file" && self.url.scheme() != "file" {
            return None;
        }
        if to.login.is_none() && to.url.origin() == self.url.origin() {
            to.login.clone_from(&self.login);
        }
        Some(to)
    }

    /// The page of a project in this index.
    pub fn project(&self, project: &str) -> Option<Self> {
        let mut index = self.clone();
        let path = format!("{}/", index.url.path().trim_end_matches('/'));
        index.url.set_path(&path);
        index.join(&format!("{project}/"))
    }

    /// The last part of its path.
    pub fn file_name(&self) -> String {
        let last = self
            .url
            .path_segments()
            .and_then(|mut parts| parts.next_back());
        decoded(last.unwrap_or_default())
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    /// For people: the server, or the file. A path or a query may hold a secret, too.
    pub fn place(&self) -> String {
        match self.url.scheme() {
            "file" => self.url.path().to_owned(),
            _ => self.url.origin().ascii_serialization(),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place())
    }
}

/// A part of an address without its percent signs.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What asks servers, as pip's settings have it.
pub(super) struct Web {
    http: reqwest::Client,
    patience: Duration,
}

impl Web {
    pub fn new(pip: &PipSettings) -> Result<Self, WeightsError> {
        let mut builder = crate::client::builder()
            .connect_timeout(pip.timeout.min(MAX_CONNECTING))
            .redirect(Policy::none());
        if let Some(path) = &pip.cert {
            builder = builder.tls_certs_merge(certificates(path)?);
        }
        if let Some(proxy) = &pip.proxy {
            builder = builder.proxy(through(proxy)?);
        }
        let http = builder.build().map_err(|error| WeightsError::Setting {
            key: "cert",
            what: innermost(&error),
        })?;
        Ok(Self {
            http,
            patience: pip.timeout,
        })
    }

    /// Asks for an address, and goes where the answer leads. Any status but a failure is an answer.
    pub async fn get(
        &self,
        address: &Address,
        headers: &HeaderMap,
    ) -> Result<(Response, Address), WeightsError> {
        let mut address = address.clone();
        for _ in 0..=HOPS {
            let mut request = self.http.get(address.url.clone()).headers(headers.clone());
            if let Some((user, password)) = &address.login {
                request = request.basic_auth(user, password.as_ref());
            }
            let sent = self.within(&address, request.send()).await?;
            let response = sent.map_err(|error| WeightsError::Unreachable {
                place: address.place(),
                what: mask(&innermost(&error)),
            })?;
            let status = response.status();
            if !status.is_redirection() {
                return match status.is_success() || status == 416 {
                    true => Ok((response, address)),
                    false => Err(WeightsError::Refused {
                        place: address.place(),
                        status: status.as_u16(),
                        retry_after: retry_after(response.headers()),
                    }),
                };
            }
            let location = response.headers().get(LOCATION);
            let to = location.and_then(|to| address.join(to.to_str().ok()?));
            address = to.ok_or_else(|| WeightsError::Nonsense {
                place: address.place(),
                what: format!("status {status} leads nowhere"),
            })?;
        }
        Err(WeightsError::Nonsense {
            place: address.place(),
            what: format!("led from one address to another more than {HOPS} times"),
        })
    }

    /// The next bytes of an answer; none at its end.
    pub async fn next(
        &self,
        from: &Address,
        response: &mut Response,
    ) -> Result<Option<impl AsRef<[u8]> + use<>>, WeightsError> {
        let chunk = self.within(from, response.chunk()).await?;
        chunk.map_err(|_| WeightsError::Cut {
            place: from.place(),
        })
    }

    async fn within<T>(
        &self,
        from: &Address,
        work: impl Future<Output = T>,
    ) -> Result<T, WeightsError> {
        let done = tokio::time::timeout(self.patience, work).await;
        done.map_err(|_| WeightsError::Stalled {
            place: from.place(),
            after: self.patience,
        })
    }
}

/// A proxy by its address, which may lack its beginning. The words never repeat it: it may hold a password.
fn through(address: &str) -> Result<Proxy, WeightsError> {
    let address = match address.contains("://") {
        true => address.to_owned(),
        false => format!("http://{address}"),
    };
    let known = address.starts_with("http://") || address.starts_with("https://");
    let proxy = Proxy::all(&address).ok().filter(|_| known);
    proxy.ok_or_else(|| WeightsError::Setting {
        key: "proxy",
        what: "it is no address of a proxy that speaks HTTP".to_owned(),
    })
}

fn certificates(path: &std::path::Path) -> Result<Vec<Certificate>, WeightsError> {
    use std::io::Read;
    let wrong = |what: String| WeightsError::Setting {
        key: "cert",
        what: format!("{}: {what}", path.display()),
    };
    let mut pem = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MOST_OF_CERT).read_to_end(&mut pem))
        .map_err(|error| wrong(error.to_string()))?;
    let all = Certificate::from_pem_bundle(&pem).map_err(|error| wrong(innermost(&error)))?;
    match all.is_empty() {
        true => Err(wrong("there is no certificate in it".to_owned())),
        false => Ok(all),
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    Some(Duration::from_secs(seconds.parse().ok()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_lets_us_in_is_for_one_server_and_is_never_shown() {
        let index = Address::parse("https://me%40x:p%3Aw@one.example/simple").unwrap();
        let page = index.project("a-b").unwrap();
        assert_eq!(page.url().as_str(), "https://one.example/simple/a-b/");
        let login = Some(("me@x".to_owned(), Some("p:w".to_owned())));
        assert_eq!(page.login, login);
        assert_eq!(page.join("../f").unwrap().login, login);
        for elsewhere in [
            "http://one.example/f",
            "https://one.example:8443/f",
            "https://two.example/f",
            "//two.example/f",
        ] {
            assert_eq!(page.join(elsewhere).unwrap().login, None, "{elsewhere}");
        }
        let other = page.join("https://you@two.example/f").unwrap();
        assert_eq!(other.login, Some(("you".to_owned(), None)));
        assert_eq!(page.place(), "https://one.example");
        assert_eq!(format!("{page:?}"), "https://one.example");
    }

    #[test]
    fn no_server_leads_to_our_files() {
        let page = Address::parse("http://one.example/").unwrap();
        assert_eq!(page.join("file:///etc/passwd"), None);
        assert_eq!(page.join("ftp://one.example/f"), None);
        assert_eq!(Address::parse("ftp://one.example/"), None);
        assert_eq!(Address::parse("one.example"), None);
    }

    #[test]
    fn an_index_may_end_with_a_slash_or_a_query() {
        for (index, wanted) in [
            ("http://a.example", "http://a.example/p/"),
            ("http://a.example/simple//", "http://a.example/simple/p/"),
            ("http://a.example/simple?x=y", "http://a.example/simple/p/"),
        ] {
            let page = Address::parse(index).unwrap().project("p").unwrap();
            assert_eq!(page.url().as_str(), wanted);
        }
    }
}
