//! The two calls of `bpf(2)` that a device filter needs. No crate offers them without a compiler for eBPF or
//! libbpf, and the numbers are fixed by the kernel's interface (`linux/bpf.h`).
#![expect(unsafe_code, reason = "see the note at the call")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};

const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_PROG_ATTACH: libc::c_int = 8;
const BPF_PROG_TYPE_CGROUP_DEVICE: u32 = 15;
const BPF_CGROUP_DEVICE: u32 = 6;

/// Programs of other owners on the same cgroup, such as systemd's, stay in force.
const BPF_F_ALLOW_MULTI: u32 = 1 << 1;

/// The size of an instruction in bytes.
const INSTRUCTION: usize = 8;

/// The program uses nothing of the kernel that asks for the GPL.
const LICENSE: &[u8] = b"Apache-2.0\0";

/// The beginning of `union bpf_attr` for loading; the kernel takes the rest as zero.
#[repr(C)]
struct LoadArguments {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
}

/// The beginning of `union bpf_attr` for attaching.
#[repr(C)]
struct AttachArguments {
    target_fd: u32,
    program_fd: u32,
    attach_type: u32,
    flags: u32,
}

/// Loads a program that decides which device files may be opened.
///
/// # Errors
/// When the kernel lacks such programs, refuses this one, or this process may not load any.
pub(super) fn load_device_filter(program: &[u8]) -> io::Result<OwnedFd> {
    let count = u32::try_from(program.len() / INSTRUCTION).map_err(io::Error::other)?;
    let arguments = LoadArguments {
        program_type: BPF_PROG_TYPE_CGROUP_DEVICE,
        instruction_count: count,
        instructions: program.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
    };
    let loaded = match bpf(BPF_PROG_LOAD, &arguments) {
        // Kernels before 5.11 count programs as locked memory.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            with_unlimited_locked_memory(|| bpf(BPF_PROG_LOAD, &arguments))?
        }
        loaded => loaded?,
    };
    let fd = i32::try_from(loaded).map_err(io::Error::other)?;
    // SAFETY: the kernel has just opened this descriptor for us; nothing else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Attaches a loaded program to the cgroup with this open directory, for as long as the cgroup exists.
///
/// # Errors
/// When the kernel refuses.
pub(super) fn attach_device_filter(program: &OwnedFd, cgroup: &File) -> io::Result<()> {
    let arguments = AttachArguments {
        target_fd: cgroup.as_raw_fd().cast_unsigned(),
        program_fd: program.as_raw_fd().cast_unsigned(),
        attach_type: BPF_CGROUP_DEVICE,
        flags: BPF_F_ALLOW_MULTI,
    };
    bpf(BPF_PROG_ATTACH, &arguments).map(drop)
}

fn bpf<T>(command: libc::c_int, arguments: &T) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes at this address, and what the addresses inside name;
    // the callers keep all of it alive during the call. It writes nothing for these commands.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(arguments), size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Does this with no limit on locked memory, which only root may lift.
fn with_unlimited_locked_memory<T>(work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_MEMLOCK)?;
    setrlimit(Resource::RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY)?;
    let result = work();
    setrlimit(Resource::RLIMIT_MEMLOCK, soft, hard)?;
    result
}
