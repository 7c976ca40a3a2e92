//! Ranks on GPUs: out-of-memory messages are recognised, and a client is removed from its MPS server before
//! it is killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cohabit_gpu::mps::{ClientRemoval, MpsDirectory, MpsPrograms};
use cohabit_types::DeviceId;
use serde_json::json;

use crate::kit::Plan;

/// PyTorch's message; on standard output, so that it is read before what is printed later.
const OUT_OF_MEMORY: &str = "echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB'";

#[test]
fn a_rank_that_fails_on_a_full_gpu_has_that_outcome() {
    let outcome = Plan::shell(&format!("echo step 1; {OUT_OF_MEMORY}; echo bye; exit 3")).outcome();
    let said = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB";
    assert_eq!(outcome, json!({ "out_of_gpu_memory": { "code": 3, "said": said } }));
    let outcome = Plan::shell(&format!("{OUT_OF_MEMORY}; kill -6 $$")).outcome();
    assert_eq!(outcome["out_of_gpu_memory"]["code"], 128 + 6);
}

#[test]
fn a_rank_that_survives_a_full_gpu_keeps_its_own_outcome() {
    assert_eq!(Plan::shell(&format!("{OUT_OF_MEMORY}; exit 0")).outcome(), json!({ "exited": 0 }));
    let much = "yes 'step 2000 loss 0.1' | head -c 100000";
    assert_eq!(Plan::shell(&format!("{OUT_OF_MEMORY}; {much}; exit 1")).outcome(), json!({ "exited": 1 }));
}

#[test]
fn a_stopped_rank_did_not_fail_on_a_full_gpu() {
    let mut rank = Plan::shell(&format!("{OUT_OF_MEMORY}; echo > $DIR/ready; exec sleep 1000")).start();
    rank.line_of("ready");
    rank.signal(15, "group");
    assert_eq!(rank.outcome(), json!({ "signalled": 15 }));
}

/// The server never answers, and the rank is killed nevertheless.
#[test]
fn a_client_is_killed_after_its_removal_was_requested() {
    let plan = Plan::shell("trap '' TERM; echo $$ > $DIR/pid; while :; do sleep 0.02; done");
    let control = "kill -0 $(cat ../pid) && echo it lives > ../asked; exec sleep 1000";
    let removal = removal(plan.path(), control);
    let mut rank = plan.change(|plan| plan.removal = Some(removal)).start();
    rank.line_of("pid");
    rank.signal(15, "group");
    rank.signal(9, "everything");
    assert_eq!(rank.outcome(), json!({ "signalled": 9 }));
    assert_eq!(rank.line_of("asked"), "it lives");
}

/// A removal by this shell script as control program, which runs in `mps` beside the rank's files.
fn removal(folder: &Path, control: &str) -> ClientRemoval {
    let programs = folder.join("mps");
    fs::create_dir(&programs).unwrap();
    let script = format!("#!/bin/sh\ntest $# = 0 || exit 1\ncd {}\n{control}\n", programs.display());
    for (name, text) in [("nvidia-cuda-mps-control", &*script), ("nvidia-cuda-mps-server", "#!/bin/sh\n")] {
        fs::write(programs.join(name), text).unwrap();
        fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let programs_found = MpsPrograms::find(&format!("{}:/usr/bin:/bin", programs.display())).unwrap();
    let directory = MpsDirectory::create(folder, &DeviceId("GPU-a".into())).unwrap();
    ClientRemoval::new(&programs_found, &directory)
}
