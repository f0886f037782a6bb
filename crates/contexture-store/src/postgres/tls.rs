//! Encryption, with the modes of PostgreSQL's own clients.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::target::Target;
use crate::StoreError;

/// What is checked of the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Nothing: who only listens learns nothing, who stands in between learns all.
    Nothing,
    /// Who signed it.
    Signer,
    /// Who signed it, and that it is for the host of the URL.
    SignerAndName,
}

/// How to encrypt a connection. The system's authorities are read only where they are needed.
pub fn connector(target: &Target) -> Result<MakeRustlsConnect, StoreError> {
    let crypto = Arc::new(ring::default_provider());
    let signers = match target.check {
        Check::Nothing => None,
        Check::Signer | Check::SignerAndName => {
            let roots = Arc::new(roots(target)?);
            let verifier =
                WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&crypto)).build();
            Some(verifier.map_err(|error| bad(target, &error.to_string()))?)
        }
    };
    let verifier = Arc::new(Verifier {
        check: target.check,
        signers,
        crypto: Arc::clone(&crypto),
    });
    let config = ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()
        .map_err(|error| bad(target, &error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn roots(target: &Target) -> Result<RootCertStore, StoreError> {
    let mut store = RootCertStore::empty();
    if let Some(path) = &target.roots {
        let failed =
            |what: &dyn std::fmt::Display| bad(target, &format!("sslrootcert {path}: {what}"));
        let found = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
        for certificate in found {
            let certificate = certificate.map_err(|error| failed(&error))?;
            store.add(certificate).map_err(|error| failed(&error))?;
        }
        if store.is_empty() {
            return Err(failed(&"has no certificate"));
        }
    } else {
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if store.is_empty() {
            return Err(bad(target, "this system trusts no certificate authority"));
        }
    }
    Ok(store)
}

fn bad(target: &Target, what: &str) -> StoreError {
    StoreError::Database {
        what: format!("{target}: {what}"),
        hint: "name the file of the authority that signed the server's certificate with \
               sslrootcert=…, or take sslmode=require"
            .to_owned(),
    }
}

/// Checks as much as was asked for, and always that the server has the certificate's key.
#[derive(Debug)]
struct Verifier {
    check: Check,
    signers: Option<Arc<WebPkiServerVerifier>>,
    crypto: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(signers) = &self.signers else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified =
            signers.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is looked at last, so everything else was in order.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.check == Check::Signer => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.crypto.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.crypto.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.crypto
            .signature_verification_algorithms
            .supported_schemes()
    }
}
