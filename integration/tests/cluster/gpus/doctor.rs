//! `doctor` on a machine with GPUs.

use cohabit_fakes::{ComputeMode, StartScript};
use serde_json::Value;

use super::kit::GpuCluster;

/// The findings on one topic.
fn on<'a>(matter: &str, findings: &'a [Value]) -> Vec<&'a Value> {
    findings.iter().filter(|finding| finding["matter"] == matter).collect()
}

#[test]
fn doctor_confirms_that_gpus_can_be_shared() {
    let gpus = GpuCluster::start(2);
    let findings = gpus.doctor(&["--probe"]);
    assert_eq!(on("gpu", &findings).len(), 2);
    assert!(on("gpu", &findings).iter().all(|it| it["seen"].as_str().unwrap().contains("not a GPU")));
    for matter in ["gpu driver", "gpu persistence", "gpu sharing", "mps programs", "mps probe"] {
        let found = on(matter, &findings);
        assert!(!found.is_empty() && found.iter().all(|it| it["judgement"] == "good"), "{found:?}");
    }
    assert!(gpus.mps_processes().is_empty(), "the probe has cleared up");
}

#[test]
fn doctor_names_what_prevents_sharing_and_the_remedy() {
    let gpus = GpuCluster::with(1, &[], |gpu| gpu.mps.control = StartScript::Exits(244));
    let probe = gpus.doctor(&["--probe"]);
    let probe = on("mps probe", &probe)[0];
    assert_ne!(probe["judgement"], "good");
    assert!(probe.to_string().contains("libcuda"), "{probe}");
    let slow = GpuCluster::with(1, &[], |gpu| gpu.persistence_mode = false).doctor(&[]);
    let finding = on("gpu persistence", &slow)[0];
    assert!(finding["judgement"] != "good" && finding.to_string().contains("nvidia-smi -pm 1"), "{finding}");
    let prohibited = GpuCluster::with(1, &[], |gpu| gpu.compute_mode = ComputeMode::Prohibited);
    let findings = prohibited.doctor(&[]);
    let finding = on("gpu", &findings)[0];
    assert!(finding["judgement"] == "broken" && finding.to_string().contains("nvidia-smi -c"), "{finding}");
}
