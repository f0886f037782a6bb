//! Where a NATS server is, apart from what it is told in secret.

use async_nats::{ConnectOptions, ServerAddr};

use crate::hub::HubError;

/// An address, and who we are there.
pub(super) struct Address {
    /// Without the secret, which the client would write into its log.
    pub(super) server: ServerAddr,
    user: String,
    password: Option<String>,
}

impl Address {
    /// Reads `nats://HOST:PORT` or `tls://HOST:PORT`, with a user and a password or with a token.
    pub(super) fn parse(text: &str) -> Result<Self, HubError> {
        // Of what cannot be read nothing is shown: it may hold a password.
        let wrong = |_| HubError::Refused {
            why: "this is no address of a NATS server: it begins with `nats://` or `tls://`"
                .to_owned(),
        };
        let mut url = text
            .trim()
            .parse::<ServerAddr>()
            .map_err(wrong)?
            .into_inner();
        let (user, password) = (decoded(url.username()), url.password().map(decoded));
        if !["nats", "tls"].contains(&url.scheme()) || url.host_str().is_none_or(str::is_empty) {
            return Err(wrong(std::io::ErrorKind::InvalidInput.into()));
        }
        let cleared = url.set_username("").and(url.set_password(None));
        cleared.map_err(|()| wrong(std::io::ErrorKind::InvalidInput.into()))?;
        url.set_query(None);
        url.set_fragment(None);
        url.set_path("");
        let server = ServerAddr::from_url(url).map_err(wrong)?;
        Ok(Self {
            server,
            user,
            password,
        })
    }

    /// The address for people.
    pub(super) fn shown(&self) -> String {
        self.server.as_url_str().to_owned()
    }

    /// Says who we are. A user without a password is a token.
    pub(super) fn identify(&self, options: ConnectOptions) -> ConnectOptions {
        let user = self.user.clone();
        match &self.password {
            Some(password) => options.user_and_password(user, password.clone()),
            None if user.is_empty() => options,
            None => options.token(user),
        }
    }
}

/// Undoes `%XX`; what is none stays.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.get(..2).filter(|_| *first == b'%');
        let code =
            code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_secret() {
        let check = |text: &str, shown: &str, user: &str, password: Option<&str>| {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.shown(), shown);
            assert_eq!(
                (address.user.as_str(), address.password.as_deref()),
                (user, password)
            );
        };
        check("nats://host:4222", "nats://host:4222", "", None);
        check("host", "nats://host", "", None);
        check(
            "tls://ann:p%40s%2Fs%zz@host:1/x?y#z",
            "tls://host:1",
            "ann",
            Some("p@s/s%zz"),
        );
        check(
            "nats://t0ken@[::1]:4222",
            "nats://[::1]:4222",
            "t0ken",
            None,
        );
        for wrong in [
            "",
            "http://ann:secret@host",
            "ws://ann:secret@host",
            "nats://ann:secret@",
            "secret:x",
        ] {
            let Err(error) = Address::parse(wrong) else {
                panic!("{wrong}");
            };
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
