//! The dashboard in a real browser: sign-in by a link, what another port's page gets, and hostile canvases.

use serde_json::json;

use crate::browser::{Browser, Stranger};
use crate::fleet::scene::Daemon;

/// The agents in the page's table.
const AGENTS: &str = "[...document.querySelectorAll('#agents td:first-child')].map((cell) => cell.textContent).join()";
const SIGNED_OUT: &str = "document.getElementById('signed-out').hidden === false";

fn shows(agents: &str) -> String {
    format!("{AGENTS} === {agents:?} && !document.getElementById('signed-in').hidden")
}

fn secret_of(tab: &crate::browser::Tab<'_>) -> String {
    let kept = tab.eval("Object.values(localStorage).join()");
    kept.as_str().unwrap().to_owned()
}

/// Attack 48.
// needs: browser
#[test]
fn a_page_signs_in_by_its_link_once_and_stays_so() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let daemon = Daemon::start();
    daemon.agent("bot", "service");
    let code = daemon.sign_in.split_once('=').unwrap().1;
    let tab = browser.tab();
    tab.open(&daemon.sign_in);
    tab.until(&shows("bot"));
    // The code is out of sight, and there is no cookie.
    assert_eq!(tab.eval("location.href"), json!(format!("{}/", daemon.url)));
    assert_eq!(tab.eval("document.cookie"), json!(""));
    assert!(
        !tab.history().iter().any(|url| url.contains(code)),
        "{:?}",
        tab.history()
    );
    let secret = secret_of(&tab);
    assert!(secret.len() == 64 && secret != code, "{secret}");
    // What happens is shown as it happens.
    daemon.agent("two", "repo");
    tab.until(&shows("bot,two"));
    tab.until("document.getElementById('events').textContent.includes('agent:state')");
    // A reload and a second tab need no link.
    tab.reload();
    tab.until(&shows("bot,two"));
    let second = browser.tab();
    second.open(&daemon.url);
    second.until(&shows("bot,two"));
    // A second use of the link explains itself, to the page that used it as well.
    let stranger = browser.strangers_tab();
    stranger.open(&daemon.sign_in);
    stranger.until(SIGNED_OUT);
    let text = stranger.eval("document.body.innerText");
    let text = text.as_str().unwrap();
    assert!(
        text.contains("no longer works") && text.contains("ctx serve link"),
        "{text}"
    );
    assert_eq!(secret_of(&stranger), "");
    second.open(&daemon.sign_in);
    second.until("document.getElementById('dead-link').hidden === false");
    second.until(&shows("bot,two"));
    // A new link, opened in the tab that is there.
    let link = daemon.ctx(&["serve", "link"]).success();
    stranger.open(link.trim_end());
    stranger.until(&shows("bot,two"));
    assert_eq!(
        stranger.eval("document.getElementById('dead-link').hidden"),
        json!(true)
    );
    // Signing out counts for all tabs of this browser, and for no other.
    tab.eval("document.getElementById('sign-out').click()");
    tab.until(SIGNED_OUT);
    second.until(SIGNED_OUT);
    assert_eq!(secret_of(&tab), "");
    let kept = json!({"jsonrpc": "2.0", "id": 1, "method": "agent.list"}).to_string();
    let headers = format!(
        "Authorization: Bearer {secret}\r\nOrigin: {}\r\n",
        daemon.url
    );
    assert_eq!(daemon.post(&headers, &kept).status, 401);
    stranger.reload();
    stranger.until(&shows("bot,two"));
    // The owner signs out everybody.
    daemon.ctx(&["serve", "link", "--revoke"]).success();
    stranger.until(SIGNED_OUT);
}

/// Attacks 16 and 48: a server on another port of this machine gets nothing of ours, and its page does nothing here.
// needs: browser
#[test]
fn a_page_of_another_port_gets_nothing() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let daemon = Daemon::start();
    daemon.agent("bot", "service");
    let stranger = Stranger::start("<!doctype html><title>x</title>");
    let tab = browser.tab();
    tab.open(&daemon.sign_in);
    tab.until(&shows("bot"));
    let secret = secret_of(&tab);
    // From our page to theirs, in the same tab.
    tab.eval(&format!("location.href = {:?}", stranger.url));
    tab.until("document.title === 'x'");
    assert_eq!(tab.eval("document.cookie + document.referrer"), json!(""));
    assert_eq!(tab.eval("localStorage.length"), json!(0));
    let heads = stranger.heads();
    assert!(!heads.is_empty());
    for head in &heads {
        let lower = head.to_lowercase();
        assert!(
            !lower.contains("cookie:") && !lower.contains("referer:"),
            "{head}"
        );
        assert!(
            !lower.contains("authorization:") && !head.contains(&secret),
            "{head}"
        );
    }
    // What it asks of the daemon comes to nothing, whatever way it asks.
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "agent.create", "params": {"name": "evil", "backendType": "native"}});
    for options in [
        "credentials: 'include', headers: {'content-type': 'application/json'}",
        "credentials: 'include', mode: 'no-cors', headers: {'content-type': 'text/plain'}",
        "credentials: 'include', headers: {authorization: 'Bearer x', 'content-type': 'application/json'}",
    ] {
        let ask = format!(
            "fetch({:?}, {{method: 'POST', body: {:?}, {options}}}).then((reply) => reply.type, (error) => error.name)",
            format!("{}/rpc", daemon.url),
            body.to_string()
        );
        let said = tab.eval(&ask);
        assert!(
            said == json!("TypeError") || said == json!("opaque"),
            "{said}"
        );
    }
    for path in ["/", "/events", "/openapi.json", "/session.js"] {
        let ask = format!(
            "fetch({:?}, {{credentials: 'include'}}).then((reply) => reply.text(), (error) => error.name)",
            format!("{}{path}", daemon.url)
        );
        assert_eq!(tab.eval(&ask), json!("TypeError"), "{path}");
    }
    // Nor can it show our page within its own.
    let framed = format!(
        "new Promise((done) => {{ const frame = document.createElement('iframe'); frame.src = {:?}; \
         frame.onload = () => setTimeout(done, 300, frame.contentWindow.length); document.body.append(frame); }})",
        daemon.url
    );
    assert_eq!(tab.eval(&framed), json!(0));
    assert!(!tab.everything().contains("What happens"));
    let agents = daemon.call(&daemon.secret(), "agent.list", &json!({}));
    assert_eq!(agents["result"]["agents"].as_array().unwrap().len(), 1);
    // Who comes back is still signed in.
    tab.open(&daemon.url);
    tab.until(&shows("bot"));
}

/// Attacks 18 and 19: a canvas is shown with its style, runs nothing and fetches nothing.
// needs: browser
#[test]
fn a_hostile_canvas_is_shown_and_does_nothing() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let daemon = Daemon::start();
    let stranger = Stranger::start("fetched");
    let (_, token) = daemon.prepare("bot", "service");
    let to = &stranger.url;
    let html = format!(
        "<style>p {{ color: #f00; background: url({to}/css) }}</style><p id=shown>a page</p>\
         <script>parent.parent.document.title = 'ran'; fetch('{to}/script')</script>\
         <script src='/app.js'></script><img src='{to}/img' onerror=\"document.body.append('ran')\">\
         <svg onload=\"fetch('{to}/svg')\"></svg><iframe src='{to}/frame'></iframe><link rel=stylesheet href='{to}/link'>\
         <meta http-equiv=refresh content='0;url={to}/refresh'><form id=f action='{to}/form'></form>\
         <object data='{to}/object'></object><base href='{to}/base'>"
    );
    let page = json!({"html": html, "title": "<b>Title</b>"});
    daemon.call(&token, "internal.canvasUpdate", &page);
    let tab = browser.tab();
    tab.open(&daemon.sign_in);
    tab.until("document.querySelector('#canvas iframe')");
    assert_eq!(
        tab.eval("document.querySelector('#canvases button').textContent"),
        json!("<b>Title</b>")
    );
    let begun = std::time::Instant::now();
    while !tab.everything().contains("a page") {
        assert!(begun.elapsed().as_secs() < 30, "{}", tab.everything());
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(stranger.heads(), Vec::<String>::new());
    assert_eq!(tab.eval("document.title"), json!("Contexture"));
    assert!(!tab.everything().contains("\"ran\""));
    // A page that is shown anew asks for a new path: the one in the frame is used up.
    let path = tab.eval("new URL(document.querySelector('#canvas iframe').src).pathname");
    assert_eq!(daemon.get(path.as_str().unwrap(), "").status, 404);
}
