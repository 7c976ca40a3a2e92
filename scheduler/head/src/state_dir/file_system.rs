//! Checks that the file system is safe for a journal and has free space: the locks and write-ahead logs of
//! SQLite break on network file systems.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::sys::stat::{major, minor};
use nix::sys::statfs::statfs;

use cohabit_types::Bytes;

use crate::HeadError;

/// A first start writes keys, tokens and the first pages of a journal.
const MIN_FREE: Bytes = Bytes(1 << 20);

/// The magic numbers of network file systems in `statfs`, and their names.
const NETWORK: [(u64, &str); 8] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB 2"),
    (0x5346_414f, "AFS"),
    (0x7375_7245, "Coda"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
];

/// FUSE file systems may be local or not; the name tells.
const FUSE: u64 = 0x6573_5546;
const NETWORK_FUSE: [&str; 7] = [
    "fuse.sshfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.gcsfuse",
    "fuse.glusterfs",
    "fuse.davfs",
    "fuse.curlftpfs",
];

/// Refuses directories on network file systems.
pub(super) fn check_local(path: &Path) -> Result<(), HeadError> {
    let system = statfs(path).map_err(|error| HeadError::state(path)(error.into()))?;
    // The type of the number differs between C libraries; its low 32 bits are what is documented.
    let magic = system.filesystem_type().0 as u64 & 0xffff_ffff;
    let kind = match magic {
        FUSE => fuse_kind(path).map_err(HeadError::state(path))?,
        _ => NETWORK.iter().find(|(number, _)| *number == magic).map(|(_, name)| (*name).to_owned()),
    };
    match kind {
        Some(kind) => Err(HeadError::NetworkFileSystem { path: path.to_owned(), kind }),
        None => Ok(()),
    }
}

/// Refuses a disk that is too full for a first start.
pub(super) fn check_free_space(path: &Path) -> Result<(), HeadError> {
    let (free, _) = space(path).map_err(HeadError::state(path))?;
    if free >= MIN_FREE { Ok(()) } else { Err(HeadError::Full { path: path.to_owned(), free }) }
}

/// What is free on the file system that holds this path, and how large it is.
pub(crate) fn space(path: &Path) -> std::io::Result<(Bytes, Bytes)> {
    let system = statfs(path)?;
    // The numbers differ in sign and size between systems.
    let bytes = |blocks: u64| Bytes(blocks.saturating_mul(system.block_size() as u64));
    Ok((bytes(system.blocks_available() as u64), bytes(system.blocks())))
}

fn fuse_kind(path: &Path) -> std::io::Result<Option<String>> {
    Ok(mounted_kind(path)?.filter(|kind| NETWORK_FUSE.contains(&kind.as_str())))
}

/// The kind of the file system that holds the file, such as `ext4`; none if the system does not tell.
pub(crate) fn kind(path: &Path) -> Option<String> {
    mounted_kind(path).ok().flatten()
}

fn mounted_kind(path: &Path) -> std::io::Result<Option<String>> {
    let device = fs::metadata(path)?.dev();
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(mount_kind(&mounts, &format!("{}:{}", major(device), minor(device))).map(ToOwned::to_owned))
}

/// The kind of the file system on this device: `36 35 0:45 / /mnt rw - fuse.sshfs host:dir rw`.
fn mount_kind<'a>(mounts: &'a str, device: &str) -> Option<&'a str> {
    let mount = mounts.lines().find(|mount| mount.split(' ').nth(2) == Some(device))?;
    mount.split_once(" - ")?.1.split(' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_by_its_device() {
        let mounts = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
                      36 22 0:45 / /mnt rw,nosuid - fuse.sshfs host:dir rw,user_id=0\n";
        assert_eq!(mount_kind(mounts, "0:45"), Some("fuse.sshfs"));
        assert_eq!(mount_kind(mounts, "254:0"), Some("ext4"));
        assert_eq!(mount_kind(mounts, "9:9"), None);
    }

    #[test]
    fn a_local_directory_is_accepted() {
        check_local(tempfile::tempdir().unwrap().path()).unwrap();
    }
}
