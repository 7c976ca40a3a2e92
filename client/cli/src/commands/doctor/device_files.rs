//! The device files of GPUs under `/dev`. NVML may work without access to them, CUDA does not.

use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::findings::Finding;

const CHECK: &str = "gpu files";
/// CUDA does not start without it, and no other check covers it.
const UVM: &str = "nvidia-uvm";

pub(super) fn check() -> Vec<Finding> {
    vec![look_in(Path::new("/dev"))]
}

fn look_in(folder: &Path) -> Finding {
    let files = match files_of_gpus(folder) {
        Ok(files) => files,
        Err(error) => {
            let observed = format!("cannot read {} ({error})", folder.display());
            return Finding::warning(CHECK, observed, "check the permissions of /dev/nvidia*");
        }
    };
    let locked: Vec<String> = files
        .iter()
        .filter(|file| access(*file, AccessFlags::R_OK | AccessFlags::W_OK).is_err())
        .map(|file| file.display().to_string())
        .collect();
    if !locked.is_empty() {
        let observed = format!("this user has no access to {}", locked.join(" "));
        return Finding::error(CHECK, observed, "grant read and write access with a group or a udev rule");
    }
    if !files.iter().any(|file| file.ends_with(UVM)) {
        return Finding::warning(
            CHECK,
            format!("{} does not exist: CUDA may not start", folder.join(UVM).display()),
            "run `nvidia-modprobe -u -c=0` as root; in a container, pass the device through",
        );
    }
    Finding::ok(CHECK, format!("this user has access to all {} of {}/nvidia*", files.len(), folder.display()))
}

/// `nvidiactl`, `nvidia-uvm`, `nvidia0` and so on. Other files, such as those of the display, are not needed.
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
    fn accessible_files_are_ok_and_other_files_do_not_count() {
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
        assert!(found.observed.contains("nvidia-uvm does not exist"), "{}", found.observed);
    }

    #[test]
    fn a_file_without_access_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        // A dangling link: even root cannot open it.
        std::os::unix::fs::symlink("/nowhere", folder.path().join("nvidia0")).unwrap();
        let found = look_in(folder.path());
        assert_eq!(found.status, Diagnosis::Error);
        assert!(found.observed.contains("nvidia0"), "{}", found.observed);
    }
}
