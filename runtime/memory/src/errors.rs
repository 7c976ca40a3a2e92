//! Why there is no memory, and why bytes are no object.

use std::io;

use rustix::io::Errno;

/// Why memory cannot be had, checked, mapped or spilled.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// More than one object may have.
    #[error("an object of {bytes} bytes is larger than {limit} bytes, the most that {limited_by} allows")]
    TooLarge {
        /// What was asked for.
        bytes: u64,
        /// The limit, in bytes.
        limit: u64,
        /// Whose limit it is.
        limited_by: &'static str,
    },
    /// The machine has not enough memory.
    #[error("this machine has no {bytes} bytes of free memory for an object: {source}")]
    NoMemory {
        /// What was asked for.
        bytes: u64,
        /// What the kernel says.
        source: io::Error,
    },
    /// The file has not the size that was stated.
    #[error("shared memory of {found} bytes was stated to have {stated}")]
    WrongSize {
        /// What was stated, in bytes.
        stated: u64,
        /// What it has, in bytes.
        found: u64,
    },
    /// The file is no shared memory that can be sealed.
    #[error("the file is not sealable shared memory (a memfd)")]
    NotSealable,
    /// The seals are not those that are needed.
    #[error("the shared memory has the seals {found:#x} instead of {needed:#x}")]
    WrongSeals {
        /// What is needed, as in `fcntl(2)`.
        needed: u32,
        /// What it has.
        found: u32,
    },
    /// Not every page of the file exists: reading one could end the process.
    #[error("only {allocated} bytes of {bytes} of the shared memory are allocated")]
    Sparse {
        /// The size of the file.
        bytes: u64,
        /// What is allocated.
        allocated: u64,
    },
    /// Some process can still write, so that sealing is refused.
    #[error("a process still has a writable mapping of the shared memory")]
    StillWritable,
    /// The spill file is shorter or longer than the object.
    #[error("a spilled object of {stated} bytes has {found} bytes on disk")]
    SpillDamaged {
        /// The object's size, in bytes.
        stated: u64,
        /// What is there, in bytes.
        found: u64,
    },
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the kernel says.
        source: io::Error,
    },
}

impl MemoryError {
    /// Turns an error of the kernel into ours.
    pub(crate) fn io(action: &'static str) -> impl Fn(Errno) -> MemoryError {
        move |errno| MemoryError::Io { action, source: errno.into() }
    }

    /// What a failure to allocate means.
    pub(crate) fn allocation(errno: Errno, bytes: u64) -> MemoryError {
        match errno {
            Errno::NOMEM | Errno::NOSPC => MemoryError::NoMemory { bytes, source: errno.into() },
            other => MemoryError::Io { action: "allocate shared memory", source: other.into() },
        }
    }
}

/// Why a value has no object, or an object no value.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// What is not in buffers is too large.
    #[error("what the value holds outside of buffers is larger than {} MiB: use Buffer for it", limit >> 20)]
    BodyTooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The value has too many buffers.
    #[error("the value has more than {limit} buffers")]
    TooManyBuffers {
        /// The limit.
        limit: usize,
    },
    /// The value refuses to be written.
    #[error("the value cannot be written: {0}")]
    Unwritable(String),
    /// The bytes are no object of this version.
    #[error("the bytes are not an object: {0}")]
    NotAnObject(&'static str),
    /// The object holds no value of this type.
    #[error("the object holds no such value: {0}")]
    OtherType(String),
    /// There is no memory for it.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}
