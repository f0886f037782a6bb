//! The table of credentials: files that no command reads, wherever they lie and however they are reached.
//!
//! A path is written as in `shell.denyRead`: `~/…` is in the home, `/…` is absolute. The table may also name what a
//! variable points to: `$XDG_CONFIG_HOME/…` and the like, with their usual places, and `$NAME` for a file or a folder, or
//! a list of them. The last part of a path may have one `*`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::ShellOptions;

/// Credentials of one sort.
#[derive(Debug, Clone, Copy)]
pub struct Credentials {
    /// The sort, as `docs/shell.md` names it.
    pub about: &'static str,
    /// Where they lie.
    pub paths: &'static [&'static str],
}

/// All that is denied, whatever the configuration says. It can only be added to.
pub const CREDENTIALS: &[Credentials] = &[
    Credentials {
        about: "Contexture's own state and configuration",
        paths: &[
            "$XDG_STATE_HOME/contexture",
            "$XDG_CONFIG_HOME/contexture",
            "$XDG_DATA_HOME/contexture",
        ],
    },
    Credentials {
        about: "keys and remote access",
        paths: &[
            "~/.ssh",
            "~/.gnupg",
            "~/.pki",
            "~/.putty",
            "~/.vnc",
            "~/.Xauthority",
            "~/.ICEauthority",
            "~/.k5login",
            "~/.smbcredentials",
            "~/.age",
            "$XDG_CONFIG_HOME/age",
            "$XDG_CONFIG_HOME/sops",
            "$XDG_CONFIG_HOME/remmina",
            "$XDG_DATA_HOME/remmina",
            "$GNUPGHOME",
            "$XAUTHORITY",
            "$KRB5_KTNAME",
        ],
    },
    Credentials {
        about: "clouds, clusters and infrastructure",
        paths: &[
            "~/.aws",
            "~/.azure",
            "~/.boto",
            "~/.bluemix",
            "~/.config/gcloud",
            "~/.databrickscfg",
            "~/.docker",
            "~/.dockercfg",
            "~/.fly",
            "~/.gsutil",
            "~/.helm",
            "~/.kube",
            "~/.minikube",
            "~/.oci",
            "~/.pulumi",
            "~/.s3cfg",
            "~/.snowflake",
            "~/.snowsql",
            "~/.terraform.d",
            "~/.terraformrc",
            "~/.vault-token",
            "~/.vercel",
            "~/.wrangler",
            "$XDG_CONFIG_HOME/.wrangler",
            "$XDG_CONFIG_HOME/containers/auth.json",
            "$XDG_CONFIG_HOME/doctl",
            "$XDG_CONFIG_HOME/gcloud",
            "$XDG_CONFIG_HOME/hcloud",
            "$XDG_CONFIG_HOME/helm",
            "$XDG_CONFIG_HOME/heroku",
            "$XDG_CONFIG_HOME/linode-cli",
            "$XDG_CONFIG_HOME/netlify",
            "$XDG_CONFIG_HOME/rclone",
            "$XDG_CONFIG_HOME/scw",
            "$XDG_CONFIG_HOME/vercel",
            "$XDG_DATA_HOME/com.vercel.cli",
            "$AWS_CONFIG_FILE",
            "$AWS_SHARED_CREDENTIALS_FILE",
            "$AWS_WEB_IDENTITY_TOKEN_FILE",
            "$AZURE_CONFIG_DIR",
            "$CLOUDSDK_CONFIG",
            "$DOCKER_CONFIG",
            "$GOOGLE_APPLICATION_CREDENTIALS",
            "$KUBECONFIG",
            "$REGISTRY_AUTH_FILE",
            "$TF_CLI_CONFIG_FILE",
        ],
    },
    Credentials {
        about: "registries, forges and package managers",
        paths: &[
            "~/.bundle/config",
            "~/.bunfig.toml",
            "~/.cargo/credentials",
            "~/.cargo/credentials.toml",
            "~/.composer/auth.json",
            "~/.gem/credentials",
            "~/.git-credentials",
            "~/.gradle/gradle.properties",
            "~/.hex",
            "~/.ivy2/.credentials",
            "~/.m2/settings-security.xml",
            "~/.m2/settings.xml",
            "~/.netrc",
            "~/.npmrc",
            "~/.nuget/NuGet/NuGet.Config",
            "~/.pip",
            "~/.pub-cache/credentials.json",
            "~/.pypirc",
            "~/.sbt/.credentials",
            "~/.subversion/auth",
            "~/.yarnrc",
            "~/.yarnrc.yml",
            "~/_netrc",
            "$XDG_CONFIG_HOME/NuGet",
            "$XDG_CONFIG_HOME/composer/auth.json",
            "$XDG_CONFIG_HOME/gh",
            "$XDG_CONFIG_HOME/git/credentials",
            "$XDG_CONFIG_HOME/glab-cli",
            "$XDG_CONFIG_HOME/hub",
            "$XDG_CONFIG_HOME/pip",
            "$XDG_CONFIG_HOME/pnpm/rc",
            "$XDG_CONFIG_HOME/pypoetry/auth.toml",
            "$XDG_CONFIG_HOME/tea",
            "$XDG_DATA_HOME/uv/credentials",
            "$GH_CONFIG_DIR",
            "$NETRC",
            "$NPM_CONFIG_USERCONFIG",
            "$PIP_CONFIG_FILE",
        ],
    },
    Credentials {
        about: "databases and mail",
        paths: &[
            "~/.fetchmailrc",
            "~/.mbsyncrc",
            "~/.msmtprc",
            "~/.my.cnf",
            "~/.mylogin.cnf",
            "~/.odbc.ini",
            "~/.pg_service.conf",
            "~/.pgpass",
            "$PGPASSFILE",
            "/var/mail",
            "/var/spool/mail",
        ],
    },
    Credentials {
        about: "other assistants and models",
        paths: &[
            "~/.cache/huggingface/token",
            "~/.claude",
            "~/.claude.json",
            "~/.codex/auth.json",
            "~/.gemini",
            "~/.kaggle",
            "~/.openai",
            "$XDG_CONFIG_HOME/anthropic",
            "$XDG_CONFIG_HOME/github-copilot",
            "$XDG_CONFIG_HOME/openai",
        ],
    },
    Credentials {
        about: "browser profiles",
        paths: &[
            "~/.mozilla",
            "~/.thunderbird",
            "~/.var/app",
            "~/snap/chromium",
            "~/snap/firefox",
            "$XDG_CONFIG_HOME/BraveSoftware",
            "$XDG_CONFIG_HOME/chromium",
            "$XDG_CONFIG_HOME/google-chrome",
            "$XDG_CONFIG_HOME/microsoft-edge",
            "$XDG_CONFIG_HOME/opera",
            "$XDG_CONFIG_HOME/vivaldi",
        ],
    },
    Credentials {
        about: "password stores and keyrings",
        paths: &[
            "~/.kde/share/apps/kwallet",
            "~/.op",
            "~/.password-store",
            "$XDG_CONFIG_HOME/1Password",
            "$XDG_CONFIG_HOME/Bitwarden",
            "$XDG_CONFIG_HOME/Bitwarden CLI",
            "$XDG_CONFIG_HOME/gopass",
            "$XDG_CONFIG_HOME/keepassxc",
            "$XDG_CONFIG_HOME/op",
            "$XDG_DATA_HOME/gopass",
            "$XDG_DATA_HOME/keyrings",
            "$XDG_DATA_HOME/kwalletd",
            "$PASSWORD_STORE_DIR",
        ],
    },
    Credentials {
        about: "histories of shells and other prompts",
        paths: &[
            "~/.*history",
            "~/.bash_sessions",
            "~/.histfile",
            "~/.julia/logs/repl_history.jl",
            "~/.lesshst",
            "~/.mongodb",
            "~/.viminfo",
            "~/.zsh_sessions",
            "$XDG_CONFIG_HOME/nushell/history.*",
            "$XDG_DATA_HOME/atuin",
            "$XDG_DATA_HOME/fish",
            "$XDG_STATE_HOME/*_history",
            "$XDG_STATE_HOME/bash",
            "$XDG_STATE_HOME/zsh",
            "$HISTFILE",
            "$MYSQL_HISTFILE",
            "$NODE_REPL_HISTORY",
            "$PSQL_HISTORY",
            "$PYTHON_HISTORY",
            "$REDISCLI_HISTFILE",
            "$SQLITE_HISTORY",
        ],
    },
    Credentials {
        about: "secrets of the system, which root could read",
        paths: &[
            "/etc/*shadow",
            "/etc/*shadow-",
            "/etc/NetworkManager/system-connections",
            "/etc/cryptsetup-keys.d",
            "/etc/docker/key.json",
            "/etc/ipsec.secrets",
            "/etc/krb5.keytab",
            "/etc/kubernetes",
            "/etc/letsencrypt",
            "/etc/mysql/debian.cnf",
            "/etc/openvpn",
            "/etc/pki/tls/private",
            "/etc/ppp/chap-secrets",
            "/etc/ppp/pap-secrets",
            "/etc/rancher",
            "/etc/security/opasswd",
            "/etc/ssh/ssh_host_*_key",
            "/etc/ssl/private",
            "/etc/wireguard",
            "/run/secrets",
            "/secrets",
            "/tmp/krb5cc_*",
            "/var/backups/*shadow.bak",
            "/var/crash",
            "/var/lib/NetworkManager/secret_key",
            "/var/lib/apport/coredump",
            "/var/lib/docker",
            "/var/lib/kubelet",
            "/var/lib/private",
            "/var/lib/rancher",
            "/var/lib/samba/private",
            "/var/lib/sss",
            "/var/lib/systemd/coredump",
            "/var/spool/cron",
            "/vault/secrets",
        ],
    },
];

/// Folders named by a variable, and where they usually are in a home.
const BASES: &[(&str, &str)] = &[
    ("$XDG_CONFIG_HOME/", ".config"),
    ("$XDG_DATA_HOME/", ".local/share"),
    ("$XDG_STATE_HOME/", ".local/state"),
];

/// The most entries of a denied folder that are looked at for links.
const MAX_LINKS: usize = 1_000;

/// The files and folders that a command must not read: those that exist, with no links in their paths, and what links
/// in these folders lead to. None of them holds another.
pub fn denied(options: &ShellOptions) -> Vec<PathBuf> {
    let mut found = BTreeSet::new();
    let homes = homes(&options.home);
    // What a variable names by mistake must not hide the project.
    let holds = |path: &Path| options.root.starts_with(path) || options.home.starts_with(path);
    for path in CREDENTIALS.iter().flat_map(|sort| sort.paths) {
        if let Some((base, rest, usual)) = base(path) {
            let named = variable(base).into_iter();
            let usual = homes.iter().map(|home| home.join(usual));
            for folder in named.chain(usual) {
                add(&folder.join(rest), &mut found);
            }
        } else if let Some(name) = path.strip_prefix('$') {
            let named = variable(name).into_iter().filter(|path| !holds(path));
            named.for_each(|path| add(&path, &mut found));
        } else if let Some(rest) = path.strip_prefix("~/") {
            homes
                .iter()
                .for_each(|home| add(&home.join(rest), &mut found));
        } else {
            add(Path::new(path), &mut found);
        }
    }
    for path in &options.deny_read {
        let path = match path.strip_prefix("~") {
            Ok(rest) => options.home.join(rest),
            Err(_) => options.root.join(path),
        };
        add(&path, &mut found);
    }
    let folders: Vec<PathBuf> = found.iter().filter(|path| path.is_dir()).cloned().collect();
    for folder in folders {
        found.extend(linked(&folder).filter(|path| !holds(path)));
    }
    let outermost = |path: &&PathBuf| {
        let mut above = path.ancestors().skip(1);
        !above.any(|above| found.contains(above))
    };
    found.iter().filter(outermost).cloned().collect()
}

/// The base of a path that begins with a variable: its name, the rest, and its usual place in a home.
fn base(path: &'static str) -> Option<(&'static str, &'static str, &'static str)> {
    let (base, usual) = BASES.iter().find(|(base, _)| path.starts_with(base))?;
    Some((&base[1..base.len() - 1], &path[base.len()..], usual))
}

/// The user's home, by whatever name, and the others that root could read.
fn homes(home: &Path) -> BTreeSet<PathBuf> {
    let mut homes = BTreeSet::from([home.to_owned(), PathBuf::from("/root")]);
    homes.extend(std::env::home_dir());
    let others = fs::read_dir("/home").into_iter().flatten().flatten();
    homes.extend(others.map(|entry| entry.path()));
    homes
}

/// The paths that a variable names.
fn variable(name: &str) -> Vec<PathBuf> {
    let value = std::env::var_os(name).unwrap_or_default();
    let paths = std::env::split_paths(&value);
    paths.filter(|path| path.is_absolute()).collect()
}

/// Adds a path where there is a file or a folder; each that fits where its last part has a `*`.
fn add(path: &Path, found: &mut BTreeSet<PathBuf>) {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    if let (Some((start, end)), Some(folder)) = (name.split_once('*'), path.parent()) {
        let fits = |name: &str| {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let fitting = entries.filter(|entry| entry.file_name().to_str().is_some_and(fits));
        return fitting.for_each(|entry| insert(&entry.path(), found));
    }
    insert(path, found);
}

/// Devices are left alone: a history that nobody wants is kept in `/dev/null`.
fn insert(path: &Path, found: &mut BTreeSet<PathBuf>) {
    let absolute = path.is_absolute().then(|| path.canonicalize());
    let real = absolute.and_then(Result::ok);
    found.extend(real.filter(|real| real.is_file() || real.is_dir()));
}

/// What links right inside a folder lead to.
fn linked(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let links = entries
        .take(MAX_LINKS)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let real = links.filter_map(|entry| entry.path().canonicalize().ok());
    real.filter(|real| real.is_file() || real.is_dir())
}

/// The same with exceptions: of what holds one of them, all else.
pub fn except(denied: &[PathBuf], allowed: &[&Path]) -> Vec<PathBuf> {
    let mut left: Vec<PathBuf> = denied.to_vec();
    let mut all = Vec::new();
    while let Some(path) = left.pop() {
        if allowed.iter().any(|allowed| *allowed == path) {
            continue;
        }
        if allowed.iter().any(|allowed| allowed.starts_with(&path)) {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            let real =
                entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
            left.extend(real.map(|entry| entry.path()));
        } else {
            all.push(path);
        }
    }
    all
}
