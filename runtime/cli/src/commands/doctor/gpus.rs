//! GPUs: what the driver says about itself and its devices, and whether MPS is installed.
//!
//! Read from the files that the driver keeps under `/proc`, so that nothing has to be loaded.

use std::env;
use std::fs;
use std::path::Path;

use super::findings::Finding;

const DRIVER: &str = "gpu driver";
const GPUS: &str = "gpus";
const MPS: &str = "mps";
const PROC: &str = "/proc/driver/nvidia";
const MPS_CONTROL: &str = "nvidia-cuda-mps-control";

pub(super) fn look() -> Vec<Finding> {
    look_in(Path::new(PROC))
}

fn look_in(proc: &Path) -> Vec<Finding> {
    let Ok(version) = fs::read_to_string(proc.join("version")) else {
        let advice = "a worker offers a host slot here; if there are NVIDIA GPUs, install their driver";
        return vec![Finding::doubtful(DRIVER, "no NVIDIA driver is loaded", advice)];
    };
    let driver = Finding::good(DRIVER, version.lines().next().unwrap_or("").trim());
    vec![driver, gpus(&proc.join("gpus")), mps()]
}

fn gpus(folder: &Path) -> Finding {
    let models: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| model(&entry.path()))
        .collect();
    match models.is_empty() {
        true => Finding::broken(
            GPUS,
            "the driver sees no GPU",
            "look for it with lspci, and at dmesg for NVRM errors",
        ),
        false => Finding::good(GPUS, models.join(", ")),
    }
}

/// `Model: NVIDIA H200` in the file `information`.
fn model(gpu: &Path) -> Option<String> {
    let text = fs::read_to_string(gpu.join("information")).ok()?;
    text.lines().find_map(|line| Some(line.strip_prefix("Model:")?.trim().to_owned()))
}

fn mps() -> Finding {
    let path = env::var_os("PATH").unwrap_or_default();
    match env::split_paths(&path).map(|folder| folder.join(MPS_CONTROL)).find(|file| file.is_file()) {
        Some(file) => Finding::good(MPS, format!("{} is installed", file.display())),
        None => Finding::doubtful(
            MPS,
            format!("{MPS_CONTROL} is not on PATH"),
            "install the driver's MPS tools to share GPUs",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::Judgement;
    use super::*;

    #[test]
    fn the_driver_names_its_gpus() {
        let folder = tempfile::tempdir().unwrap();
        let gpu = folder.path().join("gpus/0000:01:00.0");
        fs::create_dir_all(&gpu).unwrap();
        fs::write(folder.path().join("version"), "NVRM version: NVIDIA UNIX 570.1\nGCC\n").unwrap();
        fs::write(gpu.join("information"), "Model: \t\t NVIDIA H200\nIRQ: 7\n").unwrap();
        let found = look_in(folder.path());
        assert_eq!(found[0], Finding::good(DRIVER, "NVRM version: NVIDIA UNIX 570.1"));
        assert_eq!(found[1], Finding::good(GPUS, "NVIDIA H200"));
    }

    #[test]
    fn no_driver_is_doubtful_and_a_driver_without_gpus_is_broken() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(look_in(folder.path())[0].judgement, Judgement::Doubtful);
        fs::write(folder.path().join("version"), "NVRM\n").unwrap();
        assert_eq!(look_in(folder.path())[1].judgement, Judgement::Broken);
    }
}
