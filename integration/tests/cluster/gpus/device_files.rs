//! The device files that a rank may open: those of its own GPUs.
//!
//! The kernel decides, so these tests need cgroups; `integration/kernel/run` has them.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt;

use nix::sys::stat::{Mode, SFlag, makedev, mknod};

use super::kit::{GpuCluster, PART};
use crate::kit::{Cgroup, Cluster};

/// What a job prints that is refused by the filter, and by a driver that is not there.
const CLOSED: &str = "Operation not permitted";
const WITHOUT_DRIVER: &str = "No such device or address";

/// Creates the device files of the driver in the cluster's directory: those of GPUs, and that of the driver.
fn make_device_files(cluster: &Cluster) {
    for minor in [0, 1, 2, 255] {
        let (path, everybody) = (cluster.path(&format!("nvidia{minor}")), Mode::from_bits_truncate(0o666));
        mknod(path.as_str(), SFlag::S_IFCHR, everybody, makedev(195, minor)).unwrap();
        set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    }
}

/// A script that prints which of these device files are closed, and which are only without a driver.
fn try_device_files() -> String {
    format!(
        "for n in 0 1 2 255; do said=$( (: < nvidia$n) 2>&1 ); case $said in *'{CLOSED}'*) echo $n closed;; \
         *'{WITHOUT_DRIVER}'*) echo $n open;; *) echo $n \"$said\";; esac; done"
    )
}

#[test]
fn a_job_reaches_the_device_files_of_its_own_gpus_only() {
    if Cgroup::is_skipped() {
        return;
    }
    let gpus = GpuCluster::start(2);
    let printed = |flags: &[&str], script: &str| {
        let job = gpus.cluster.submit(flags, script);
        assert_eq!(gpus.cluster.end(&job)["state"], "COMPLETED");
        gpus.cluster.ok(&["logs", &job])
    };
    make_device_files(&gpus.cluster);
    let script = format!("echo $COHABIT_GPU_UUIDS; {}", try_device_files());
    for flags in [&["--gpus", "1"][..], &PART] {
        let said = printed(flags, &script);
        let (given, files) = said.split_once('\n').unwrap();
        let (own, other) = if given == gpus.uuid(0) { (0, 1) } else { (1, 0) };
        let mut expected = [format!("{own} open"), format!("{other} closed")];
        expected.sort();
        assert_eq!(files, format!("{}\n{}\n2 closed\n255 open\n", expected[0], expected[1]), "{flags:?}");
    }
    assert_eq!(printed(&["--gpus", "0"], &try_device_files()), "0 closed\n1 closed\n2 closed\n255 open\n");
    let both = printed(&["--gpus", "2"], &try_device_files());
    assert_eq!(both, "0 open\n1 open\n2 closed\n255 open\n");
    let made = printed(&["--gpus", "1"], "mknod own c 195 2 2>&1 | grep -c 'Operation not permitted'");
    assert_eq!(made, "1\n", "a root job cannot create what it may not open");
}
