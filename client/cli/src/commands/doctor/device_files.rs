//! The files under `/dev` through which programs reach GPUs: the library may answer where CUDA may not.

use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::findings::Finding;

const CHECK: &str = "gpu files";
/// CUDA does not start without it, and nothing else makes sure that it is there.
const UVM: &str = "nvidia-uvm";

pub(super) fn check() -> Vec<Finding> {
    vec![look_in(Path::new("/dev"))]
}

fn look_in(folder: &Path) -> Finding {
    let files = match files_of_gpus(folder) {
        Ok(files) => files,
        Err(error) => {
            let seen = format!("{} cannot be read ({error})", folder.display());
            return Finding::warning(CHECK, seen, "look at the permissions of /dev/nvidia* yourself");
        }
    };
    let locked: Vec<String> = files
        .iter()
        .filter(|file| access(*file, AccessFlags::R_OK | AccessFlags::W_OK).is_err())
        .map(|file| file.display().to_string())
        .collect();
    if !locked.is_empty() {
        let seen = format!("this user may not use {}", locked.join(" "));
        return Finding::error(CHECK, seen, "let it read and write them, by a group or a udev rule");
    }
    if !files.iter().any(|file| file.ends_with(UVM)) {
        return Finding::warning(
            CHECK,
            format!("{} is not there: CUDA may not start", folder.join(UVM).display()),
            "run `nvidia-modprobe -u -c=0` as root; in a container, pass the device in",
        );
    }
    Finding::ok(CHECK, format!("this user may use all {} of {}/nvidia*", files.len(), folder.display()))
}

/// `nvidiactl`, `nvidia-uvm`, `nvidia0` and the like. Others, such as those of the display, matter to nobody
/// here.
fn files_of_gpus(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_one = entry.file_name().to_str().is_some_and(|name| match name.strip_prefix("nvidia") {
            Some(number) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => true,
            Some(_) | None => ["nvidiactl", UVM].contains(&name),
        });
        if is_one {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::super::findings::Diagnosis;
    use super::*;

    #[test]
    fn files_that_are_there_and_open_are_good_and_others_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "null"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = look_in(folder.path());
        assert_eq!(found.status, Diagnosis::Ok);
        assert!(found.observed.contains("all 4"), "{}", found.observed);
    }

    #[test]
    fn without_unified_memory_cuda_may_not_start() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("nvidia0"), "").unwrap();
        let found = look_in(folder.path());
        assert_eq!(found.status, Diagnosis::Warning);
        assert!(found.observed.contains("nvidia-uvm is not there"), "{}", found.observed);
    }

    #[test]
    fn what_cannot_be_used_is_broken() {
        let folder = tempfile::tempdir().unwrap();
        // A link to nothing: even root may not use it.
        std::os::unix::fs::symlink("/nowhere", folder.path().join("nvidia0")).unwrap();
        let found = look_in(folder.path());
        assert_eq!(found.status, Diagnosis::Error);
        assert!(found.observed.contains("nvidia0"), "{}", found.observed);
    }
}
