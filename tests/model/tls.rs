//! An index whose certificate only pip's own settings know.

use std::io::BufReader;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use contexture_model::weights::{PipSettings, WeightsError};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::model::scene::{Scene, alone};

/// A certificate of its own for this machine, in two files.
fn certificate(folder: &Path) -> bool {
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
        ])
        .args(["-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .output();
    let missing = !made.is_ok_and(|output| output.status.success());
    if missing {
        println!("skipped: there is no openssl");
    }
    missing
}

/// Speaks for a scene's index behind the certificate. Its port.
fn behind(scene: &Scene, folder: &Path) -> u16 {
    let cert = CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert], key)
        .unwrap();
    let (config, index) = (Arc::new(config), Arc::clone(&scene.server.index));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (config, index) = (Arc::clone(&config), Arc::clone(&index));
            std::thread::spawn(move || {
                let connection = ServerConnection::new(config).unwrap();
                let mut stream = BufReader::new(StreamOwned::new(connection, stream));
                loop {
                    let mut said = Vec::new();
                    if !index.answer(&mut stream, &mut said).unwrap_or(false) {
                        return;
                    }
                    if std::io::Write::write_all(stream.get_mut(), &said).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

// needs: openssl
#[test]
fn certificates_of_pips_settings_are_trusted() {
    let scene = Scene::new();
    let folder = scene.folder("certificates");
    if certificate(&folder) {
        return;
    }
    let port = behind(&scene, &folder);
    let pip = PipSettings {
        indexes: vec![format!("https://localhost:{port}/simple")],
        retries: 0,
        ..scene.pip()
    };
    let error = alone(scene.pull_with(&pip));
    assert!(
        matches!(error, WeightsError::Unreachable { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("certificate"), "{error}");
    let pip = PipSettings {
        cert: Some(folder.join("cert.pem")),
        ..pip
    };
    scene.whole(&scene.pull_with(&pip).unwrap());
}
