//! What a command finds in its environment: a few variables, and none of ours.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The whole environment of a command. Nothing else is inherited, so neither keys nor what changes how
/// programs run (`LD_*`, `GIT_*`, `PAGER`) gets in.
pub fn clean(home: &Path, temporary: &Path) -> Vec<(&'static str, OsString)> {
    let ours = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let mut all = vec![
        ("PATH", path(ours("PATH").as_deref())),
        ("HOME", home.into()),
        ("TMPDIR", temporary.into()),
        ("LANG", ours("LANG").unwrap_or_else(|| "C.UTF-8".into())),
        ("TERM", "dumb".into()),
        ("SHELL", "/bin/sh".into()),
    ];
    all.extend(
        ["USER", "LOGNAME", "TZ"]
            .into_iter()
            .filter_map(|name| Some((name, ours(name)?))),
    );
    all
}

/// Where programs are looked for: a relative folder would be looked for in the project.
fn path(ours: Option<&OsStr>) -> OsString {
    let ours = ours.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    let folders = std::env::split_paths(ours).filter(|folder| folder.is_absolute());
    std::env::join_paths(folders).unwrap_or_else(|_| "/usr/bin:/bin".into())
}
