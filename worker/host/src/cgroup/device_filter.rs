//! Closes device files to the processes of a cgroup.
//!
//! Version 2 of cgroups has no file for this: the kernel asks an eBPF program that is attached to the cgroup,
//! and to each cgroup above it, whenever a process opens or creates a device file. What any of them denies
//! fails as "operation not permitted" (`bpf_cgroup_dev_ctx` in the kernel's `linux/bpf.h`).

use std::fmt::Write;
use std::fs::File;
use std::io;
use std::path::Path;

use cohabit_gpu::DeviceRange;
use rbpf::assembler::assemble;

use super::bpf;

/// Loads the kind of the file (1 is a block device, 2 a character device), its major and its minor number
/// into r2, r3 and r4. Everything but character devices is allowed.
const QUESTION: &str = "ldxw r2, [r1+0]\nand r2, 0xffff\nldxw r3, [r1+4]\nldxw r4, [r1+8]\n\
                        jeq r2, 2, +2\nmov r0, 1\nexit\n";

const ALLOW: &str = "mov r0, 1\nexit\n";

/// Attaches a program to this cgroup that closes these character devices, and no others, to its processes.
///
/// # Errors
/// When the kernel refuses: only root may do this, and the kernel needs `CONFIG_CGROUP_BPF`.
pub(super) fn close(cgroup: &Path, closed: &[DeviceRange]) -> io::Result<()> {
    let program = bpf::load_device_filter(&program(closed)?)?;
    bpf::attach_device_filter(&program, &File::open(cgroup)?)
}

/// The program: denies these ranges of character devices and allows everything else.
fn program(closed: &[DeviceRange]) -> io::Result<Vec<u8>> {
    let mut text = QUESTION.to_owned();
    for DeviceRange { major, first, last } in closed {
        // Each test that fails jumps behind the end of the range's block.
        let _ =
            write!(text, "jne r3, {major}, +4\njlt r4, {first}, +3\njgt r4, {last}, +2\nmov r0, 0\nexit\n");
    }
    assemble(&(text + ALLOW)).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use rbpf::EbpfVmRaw;

    use super::*;

    const BLOCK: u32 = 1;
    const CHARACTER: u32 = 2;

    /// What the program answers, run by an interpreter. Reading and writing are wanted.
    fn allows(closed: &[DeviceRange], kind: u32, major: u32, minor: u32) -> bool {
        let program = program(closed).unwrap();
        let mut question: Vec<u8> =
            [6 << 16 | kind, major, minor].into_iter().flat_map(u32::to_le_bytes).collect();
        let machine = EbpfVmRaw::new(Some(&program)).unwrap();
        machine.execute_program(&mut question).unwrap() == 1
    }

    fn range(major: u32, first: u32, last: u32) -> DeviceRange {
        DeviceRange { major, first, last }
    }

    #[test]
    fn closed_ranges_are_denied_to_their_ends_and_everything_else_is_allowed() {
        let closed = [range(195, 0, 1), range(195, 3, 253), range(226, 128, 128)];
        let denied = |major: u32| -> Vec<u32> {
            (0..300).filter(|minor| !allows(&closed, CHARACTER, major, *minor)).collect()
        };
        assert_eq!(denied(195), (0..=1).chain(3..=253).collect::<Vec<u32>>());
        assert_eq!(denied(226), [128]);
        for open in [1, 194, 196, 227] {
            assert_eq!(denied(open), Vec::<u32>::new(), "major {open}");
        }
        assert!(allows(&closed, BLOCK, 195, 0), "block devices have numbers of their own");
    }

    #[test]
    fn without_ranges_everything_is_allowed() {
        assert!(allows(&[], CHARACTER, 195, 0));
    }
}
