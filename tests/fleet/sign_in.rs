//! Sign-in links of the real daemon, without a browser: what they give, how long, and who gets in meanwhile.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::common::Project;
use crate::fleet::scene::{Answer, Daemon};

/// What our page sends to exchange the code of a link.
fn exchange(daemon: &Daemon, link: &str) -> Answer {
    let code = link.split_once("/#sign-in=").unwrap().1;
    let body = json!({ "code": code }).to_string();
    daemon.send(&format!(
        "POST /sign-in HTTP/1.1\r\nHost: {}\r\nOrigin: {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        daemon.host(),
        daemon.url,
        body.len()
    ))
}

fn enter(daemon: &Daemon, link: &str) -> String {
    let entered = exchange(daemon, link);
    assert_eq!(entered.status, 200, "{}", entered.body);
    assert!(entered.header("set-cookie").is_none());
    let said: Value = serde_json::from_str(&entered.body).unwrap();
    said["secret"].as_str().unwrap().to_owned()
}

/// A call as a page makes it.
fn ask(daemon: &Daemon, headers: &str) -> u16 {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "agent.list"}).to_string();
    daemon
        .post(&format!("{headers}Origin: {}\r\n", daemon.url), &body)
        .status
}

/// Attack 48.
#[test]
fn a_new_link_is_a_command_away_and_no_cookie_opens_anything() {
    let daemon = Daemon::start();
    let said = daemon.ctx(&["serve", "link"]).success();
    let (link, rest) = said.split_once('\n').unwrap();
    assert!(
        link.starts_with(&format!("{}/#sign-in=", daemon.url)) && rest.is_empty(),
        "{said}"
    );
    let made = daemon.ctx(&["serve", "link", "--json"]).json();
    assert_eq!(
        (&made["expiresSeconds"], &made["pageSeconds"]),
        (&json!(600), &json!(43_200))
    );
    let other = made["signIn"].as_str().unwrap();
    assert!(other != link && link != daemon.sign_in);
    for link in [link, other, &daemon.sign_in] {
        let secret = enter(&daemon, link);
        assert_eq!(
            ask(&daemon, &format!("Authorization: Bearer {secret}\r\n")),
            200
        );
        let port = daemon.host().rsplit_once(':').unwrap().1;
        for secret in [&secret, &daemon.secret()] {
            let cookie =
                format!("Cookie: contexture_{port}={secret}; contexture.secret={secret}\r\n");
            assert_eq!(ask(&daemon, &cookie), 401);
            assert_eq!(daemon.get("/events", &cookie).status, 401);
        }
        let again = exchange(&daemon, link);
        assert_eq!(again.status, 401);
        assert!(again.body.contains("ctx serve link"), "{}", again.body);
    }
}

#[test]
fn revoke_signs_out_every_page_and_voids_open_links() {
    let mut daemon = Daemon::start();
    let page = |secret: &str| format!("Authorization: Bearer {secret}\r\n");
    let first = enter(&daemon, &daemon.sign_in);
    let open = daemon.ctx(&["serve", "link"]).success();
    let made = daemon.ctx(&["serve", "link", "--revoke", "--json"]).json();
    assert_eq!(ask(&daemon, &page(&first)), 401);
    assert_eq!(exchange(&daemon, open.trim_end()).status, 401);
    let second = enter(&daemon, made["signIn"].as_str().unwrap());
    assert_eq!(ask(&daemon, &page(&second)), 200);
    // What a browser has kept opens nothing of the next daemon.
    daemon.kill();
    daemon.again();
    assert_eq!(ask(&daemon, &page(&second)), 401);
}

#[test]
fn a_link_takes_a_daemon_and_the_options_of_serve_do_not_mix_with_it() {
    let project = Project::new();
    project.ctx(&["serve", "link"]).failure(1, "no daemon runs");
    project
        .ctx(&["serve", "--public", "link"])
        .failure(2, "cannot be used with");
    project.ctx(&["serve", "lnik"]).failure(2, "link");
    let help = project.ctx(&["serve", "--help"]).success();
    assert!(help.contains("--listen") && help.contains("link"), "{help}");
}

/// Attack 49: more silent connections than the daemon keeps, and the owner's commands are answered at once.
#[test]
fn silent_connections_do_not_lock_the_owner_out() {
    let daemon = Daemon::start();
    let silent: Vec<TcpStream> = (0..600).map(|_| daemon.connect()).collect();
    for _ in 0..5 {
        let begun = Instant::now();
        let said = daemon.call(&daemon.secret(), "agent.list", &json!({}));
        assert!(said["result"].is_object(), "{said}");
        assert!(
            begun.elapsed() < Duration::from_secs(8),
            "{:?}",
            begun.elapsed()
        );
    }
    daemon.ctx(&["serve", "link"]).success();
    drop(silent);
}

/// Attack 49: nor does it take that many where a process has few file handles.
#[test]
fn silent_connections_that_take_all_file_handles_make_room() {
    let daemon = Daemon::start();
    let few = Rlimit {
        current: Some(64),
        maximum: Some(64),
    };
    let process = Pid::from_raw(daemon.pid().try_into().unwrap());
    prlimit(process, Resource::Nofile, few).unwrap();
    let silent: Vec<TcpStream> = (0..200).map(|_| daemon.connect()).collect();
    for _ in 0..5 {
        let begun = Instant::now();
        let said = daemon.call(&daemon.secret(), "agent.list", &json!({}));
        assert!(said["result"].is_object(), "{said}");
        assert!(
            begun.elapsed() < Duration::from_secs(8),
            "{:?}",
            begun.elapsed()
        );
    }
    drop(silent);
}
