use std::io::Write;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::UnixListener;

use contexture_tools::shell::{Shell, ShellOptions};

use super::{Project, assert_has, run, sandboxes, text};

/// Opens what it is told to, and says what came of it.
const TRY: &str = r#"python3 - <<'E'
import socket, sys
def say(name, work):
    try: print(name, "worked", work())
    except OSError as error: print(name, "refused", error)
def tcp(family, host):
    s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(5); s.connect((host, PORT)); return s.recv(5)
def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); return s.sendto(b"x", ("127.0.0.1", PORT))
def unix():
    s = socket.socket(socket.AF_UNIX); s.connect("@PATH"); return "in"
def raw(): return socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
def serve():
    s = socket.socket(); s.bind(("127.0.0.1", 0)); return "bound"
def pair():
    a, b = socket.socketpair(); a.send(b"x"); return b.recv(1)
say("tcp", lambda: tcp(socket.AF_INET, "127.0.0.1"))
say("udp", udp)
say("unix", unix)
say("raw", raw)
say("serve", serve)
say("pair", pair)
E"#;

struct Servers {
    tcp: TcpListener,
    udp: UdpSocket,
    _unix: UnixListener,
    script: String,
}

fn servers(project: &Project) -> Servers {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let udp = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    udp.set_nonblocking(true).unwrap();
    // Where commands see it, as they do those in `/tmp`: of terminals, agents for keys, desktops.
    let path = project.root.join("socket");
    let unix = UnixListener::bind(&path).unwrap();
    let accepted = tcp.try_clone().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = accepted.accept() {
            _ = stream.write_all(b"hello");
        }
    });
    Servers {
        tcp,
        udp,
        _unix: unix,
        script: TRY
            .replace("PORT", &port.to_string())
            .replace("@PATH", path.to_str().unwrap()),
    }
}

// needs: landlock
#[tokio::test]
async fn without_a_network_nothing_is_reached() {
    for sandbox in sandboxes() {
        let project = Project::new();
        let servers = servers(&project);
        let outcome = run(&project.within(sandbox), &servers.script).await;
        for name in ["tcp", "unix", "raw"] {
            assert_has(&outcome, &format!("{name} refused"));
        }
        // Whatever a sandbox says to the sender, nothing arrives.
        assert!(
            servers.udp.recv(&mut [0]).is_err(),
            "{sandbox}: {}",
            text(&outcome)
        );
        // Programs talk to their own children like this.
        assert_has(&outcome, "pair worked");
        drop(servers.tcp);
    }
}

// needs: landlock
#[tokio::test]
async fn a_network_can_be_allowed_and_local_sockets_stay_shut() {
    for sandbox in sandboxes() {
        let project = Project::new();
        let options = ShellOptions {
            network: true,
            sandbox: Some(sandbox),
            ..project.options()
        };
        let shell = Shell::new(options).unwrap();
        let outcome = run(&shell, &servers(&project).script).await;
        assert_has(&outcome, "tcp worked b'hello'");
        assert_has(&outcome, "udp worked");
        assert_has(&outcome, "serve worked");
        assert_has(&outcome, "unix refused");
        assert_has(&outcome, "raw refused");
    }
}

/// Ways around a filter of system calls.
// needs: landlock
#[tokio::test]
async fn other_doors_are_shut() {
    for sandbox in sandboxes() {
        let project = Project::new();
        let shell = project.within(sandbox);
        // io_uring_setup could open sockets. With a wrong argument it says EFAULT or EINVAL when allowed.
        let call = "python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); print(l.syscall(425, 1, 0), ctypes.get_errno())'";
        assert!(text(&run(&shell, call).await).ends_with("-1 1"));
        // In another network namespace there might be another network.
        assert!(
            run(&shell, "unshare -n true && nsenter -t 1 -n true")
                .await
                .failed,
            "{sandbox}"
        );
    }
}
