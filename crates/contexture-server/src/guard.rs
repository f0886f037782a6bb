//! What holds for every request, whoever sends it: it is meant for us, and no other site's page sends it.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::door::Door;
use crate::refusal::Refusal;

/// Nothing loads and nothing may show it in a frame, unless a page says otherwise of itself.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'";

/// Refuses what is not for us, and puts the headers on that every answer has.
pub(crate) async fn guard(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let mut response = if foreign(&door, &request) {
        Refusal::Foreign.into_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    let mut unless_set = |name: HeaderName, value: &'static str| {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    };
    unless_set(header::CONTENT_SECURITY_POLICY, NOTHING);
    unless_set(header::X_FRAME_OPTIONS, "DENY");
    unless_set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    unless_set(header::REFERRER_POLICY, "no-referrer");
    unless_set(header::CACHE_CONTROL, "no-store");
    unless_set(
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    );
    unless_set(
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    );
    response
}

fn foreign(door: &Door, request: &Request) -> bool {
    let headers = request.headers();
    let Some(host) = only(headers, &header::HOST) else {
        return true;
    };
    // A proxy's form of request names its host twice.
    let named = request.uri().authority().map(|named| named.as_str());
    if !is_ours(door.address.ip(), host) || named.is_some_and(|named| named != host) {
        return true;
    }
    let from_elsewhere = headers.contains_key(header::ORIGIN) && !has_own_origin(headers);
    from_elsewhere || (is_cross_site(headers) && !is_entrance(request))
}

/// A link to the dashboard may stand on any page: it shows nothing to whoever is not signed in.
fn is_entrance(request: &Request) -> bool {
    request.method() == Method::GET && request.uri().path() == "/"
}

/// Browsers say from where they were sent. The other ports of this machine are other sites to us.
fn is_cross_site(headers: &HeaderMap) -> bool {
    let site = HeaderName::from_static("sec-fetch-site");
    let mut all = headers.get_all(site).iter();
    all.any(|site| site != "same-origin" && site != "none")
}

/// Whether the request says that it comes from a page of ours.
pub(crate) fn has_own_origin(headers: &HeaderMap) -> bool {
    let origin = only(headers, &header::ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
    match (origin, only(headers, &header::HOST)) {
        (Some(origin), Some(host)) => origin.eq_ignore_ascii_case(host),
        _ => false,
    }
}

/// Whether the body is said to be JSON, which no form can say.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = only(headers, &header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// A header that is there once, in plain letters.
pub(crate) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Whether a `Host` is a name of this machine's own, or the address that we listen at. Any other name
/// may be one that was pointed here on purpose.
fn is_ours(listens: IpAddr, host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, "")) => (name, None),
        Some((name, rest)) => match rest.strip_prefix(':') {
            Some(port) => (name, Some(port)),
            None => return false,
        },
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return false;
    }
    match name.parse::<IpAddr>() {
        Ok(ip) => ip.is_loopback() || ip == listens || listens.is_unspecified(),
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Attack 15.
    #[test]
    fn only_our_own_names_are_ours() {
        let home: IpAddr = "127.0.0.1".parse().unwrap();
        for host in [
            "127.0.0.1",
            "127.0.0.1:4100",
            "localhost:4100",
            "LOCALHOST",
            "[::1]:4100",
            "[::1]",
            "127.8.9.1:1",
        ] {
            assert!(is_ours(home, host), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:4100",
            "localhost.evil.example",
            "localhost.",
            "127.0.0.1.evil.example",
            "127.1",
            "0.0.0.0:4100",
            "10.0.0.1",
            "[::1",
            "[::1]x",
            "localhost:4100:1",
            "localhost:",
            "localhost:99999",
            "user@localhost",
            "",
        ] {
            assert!(!is_ours(home, host), "{host}");
        }
        let all: IpAddr = "0.0.0.0".parse().unwrap();
        assert!(is_ours(all, "10.0.0.1:4100") && !is_ours(all, "evil.example"));
    }
}
