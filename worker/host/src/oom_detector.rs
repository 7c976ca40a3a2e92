//! Detects the messages by which frameworks report that the GPU has no memory left.
//!
//! Pure. Programs may survive such an error, for example with a smaller batch, so a message only counts if
//! little was printed after it.

use cohabit_types::LogStream;

/// The most bytes on both streams after the message: enough for a long traceback, not for an hour of
/// training.
const MAX_DISTANCE: u64 = 64 * 1024;

/// A longer line is examined in pieces.
const MAX_LINE: usize = 16 * 1024;

/// The most characters of a message that are reported.
const MAX_MESSAGE: usize = 200;

/// A line matches if it contains all parts of one pattern.
const PATTERNS: [&[&str]; 12] = [
    // PyTorch, and CUDA's own messages.
    &["CUDA out of memory"],
    &["CUDA error: out of memory"],
    &["torch.OutOfMemoryError"],
    &["torch.cuda.OutOfMemoryError"],
    // XLA, and with it JAX. TensorFlow prints the second one for host memory, too.
    &["RESOURCE_EXHAUSTED: Out of memory"],
    &["OOM when allocating tensor", "GPU"],
    &["cupy.cuda.memory.OutOfMemoryError"],
    // Error names of the driver, the runtime and two libraries.
    &["CUDA_ERROR_OUT_OF_MEMORY"],
    &["cudaErrorMemoryAllocation"],
    &["CUBLAS_STATUS_ALLOC_FAILED"],
    &["CUDNN_STATUS_ALLOC_FAILED"],
    &["CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"],
];

/// A line with one of these is a warning: the framework goes on.
const WARNINGS: [&str; 3] = ["not a failure", "Warning: ", "warnings.warn"];

/// The detector for both streams of a rank.
#[derive(Debug, Default)]
pub struct OutOfMemoryDetector {
    /// Bytes printed on both streams.
    length: u64,
    /// The last matching line, and the length after it.
    found: Option<(u64, String)>,
    /// Unfinished lines.
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl OutOfMemoryDetector {
    /// Examines output.
    pub fn append(&mut self, stream: LogStream, bytes: &[u8]) {
        for part in bytes.split_inclusive(ends_line) {
            self.length += part.len() as u64;
            let line = match stream {
                LogStream::Stdout => &mut self.stdout,
                LogStream::Stderr => &mut self.stderr,
            };
            line.extend(part);
            if part.last().is_some_and(ends_line) || line.len() >= MAX_LINE {
                let line = std::mem::take(line);
                self.examine(&line);
            }
        }
    }

    /// The message, if it was printed shortly before the end. Call it at the end.
    #[must_use]
    pub fn out_of_gpu_memory(mut self) -> Option<String> {
        for unfinished in [std::mem::take(&mut self.stdout), std::mem::take(&mut self.stderr)] {
            self.examine(&unfinished);
        }
        let (position, message) = self.found?;
        (self.length - position <= MAX_DISTANCE).then_some(message)
    }

    fn examine(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let is_message = PATTERNS.iter().any(|pattern| pattern.iter().all(|part| line.contains(part)));
        if is_message && !is_warning(&line) {
            self.found = Some((self.length, line.trim().chars().take(MAX_MESSAGE).collect()));
        }
    }
}

/// Whether the line says that it is no error: in words, or by the severity of a log line of C++, such as
/// `W0311 10:00:00`, `[W311 10:00:00 …]` or `2024-03-11 10:00:00: W external/…/cuda_driver.cc:1044]`.
/// TensorFlow tries several sizes, and logs each that does not fit.
fn is_warning(line: &str) -> bool {
    let has_severity = |word: &str| {
        let rest = word.trim_start_matches('[').strip_prefix(['W', 'I']);
        rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_of_cpp = [".cc:", ".cpp:", ".h:"].iter().any(|file| line.contains(file));
    let is_log_line = is_of_cpp && line.split_whitespace().take(4).any(has_severity);
    is_log_line || WARNINGS.iter().any(|words| line.contains(words))
}

fn ends_line(byte: &u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(pieces: &[&str]) -> Option<String> {
        let mut printed = OutOfMemoryDetector::default();
        pieces.iter().for_each(|piece| printed.append(LogStream::Stderr, piece.as_bytes()));
        printed.out_of_gpu_memory()
    }

    #[test]
    fn the_messages_of_every_framework_are_known() {
        for words in [
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity",
            "RuntimeError: CUDA error: out of memory",
            "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB",
            "torch.cuda.OutOfMemoryError: Allocation on device",
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate",
            "ResourceExhaustedError: OOM when allocating tensor with shape[8] on /device:GPU:0 by allocator GPU_0_bfc",
            "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 1,024 bytes",
            "failed to allocate 1.2G: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
            "cudaErrorMemoryAllocation: out of memory",
            "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        ] {
            assert_eq!(message(&[words, "\n"]).as_deref(), Some(words));
        }
    }

    #[test]
    fn messages_about_host_memory_do_not_match() {
        for words in [
            "java.lang.OutOfMemoryError: Java heap space",
            "MemoryError: Unable to allocate 8.00 GiB for an array",
            "ResourceExhaustedError: OOM when allocating tensor with shape[8] on /device:CPU:0 by allocator cpu",
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            "RESOURCE_EXHAUSTED: too many requests",
        ] {
            assert_eq!(message(&[words, "\n"]), None, "{words}");
        }
    }

    #[test]
    fn a_warning_about_memory_is_not_taken_for_the_cause_of_the_end() {
        for words in [
            "2024-03-11 10:00:00.1: W external/local_tsl/tsl/framework/bfc_allocator.cc:296] Allocator (GPU_0_bfc) ran \
             out of memory trying to allocate 2.5GiB with freed_by_count=0. The caller indicates that this is not a \
             failure: CUDA_ERROR_OUT_OF_MEMORY",
            "2024-03-11 10:00:00.1: I external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:1044] failed to allocate \
             8.00GiB (8589934592 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
            "W0311 10:00:00.1 7 gpu_allocator.cc:99] CUDA_ERROR_OUT_OF_MEMORY",
            "[W311 10:00:00 CUDACachingAllocator.cpp:12] Warning: CUDA out of memory, retrying",
            "/lib/batch_size.py:40: UserWarning: CUDA out of memory at batch size 64, trying 32",
        ] {
            assert_eq!(message(&[words, "\nValueError: bad input\n"]), None, "{words}");
        }
        let fatal = "E0311 10:00:00.1 7 gpu_allocator.cc:99] CUDA_ERROR_OUT_OF_MEMORY";
        assert_eq!(message(&[fatal, "\n"]).as_deref(), Some(fatal));
    }

    #[test]
    fn a_message_is_found_across_pieces_and_in_an_unfinished_line() {
        let words = Some("E: CUDA out of memory.".to_owned());
        assert_eq!(message(&["step 1\rE: CUDA ou", "t of mem", "ory.\r\nbye\n"]), words);
        assert_eq!(message(&["step 1\nE: CUDA out of", " memory."]), words);
    }

    #[test]
    fn the_two_streams_are_separate() {
        let mut printed = OutOfMemoryDetector::default();
        printed.append(LogStream::Stdout, b"CUDA out ");
        printed.append(LogStream::Stderr, b"of memory");
        printed.append(LogStream::Stdout, b"the window\n");
        assert_eq!(printed.out_of_gpu_memory(), None);
    }

    #[test]
    fn a_message_long_before_the_end_does_not_count() {
        let later = "step 2000 loss 0.1\n".repeat(4000);
        assert_eq!(
            message(&["CUDA out of memory\n", &later[..MAX_DISTANCE as usize]]).as_deref(),
            Some("CUDA out of memory")
        );
        assert_eq!(message(&["CUDA out of memory\n", &later[..=MAX_DISTANCE as usize]]), None);
    }

    #[test]
    fn an_endless_line_takes_bounded_memory_and_a_message_is_bounded() {
        let mut printed = OutOfMemoryDetector::default();
        for _ in 0..1000 {
            printed.append(LogStream::Stdout, &[b'x'; 1000]);
            assert!(printed.stdout.len() < MAX_LINE + 1000);
        }
        let long = format!("CUDA out of memory {}\n", "ü".repeat(10_000));
        assert_eq!(message(&[&long]).unwrap().chars().count(), MAX_MESSAGE);
    }
}
