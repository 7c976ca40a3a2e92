//! Finds in what a rank prints the words by which frameworks say that the GPU has no memory left for it.
//!
//! Pure. Programs survive such an error, with a smaller batch for example: so the words count only while
//! little has been printed since.

use cohabit_types::LogStream;

/// So many bytes of both streams may have been printed since: a long traceback, and not an hour of training.
const MAX_DISTANCE: u64 = 64 * 1024;

/// A longer line is looked at in pieces.
const MAX_LINE: usize = 16 * 1024;

/// Of a longer line no more characters are told.
const MAX_MESSAGE: usize = 200;

/// A line says it if it has all words of one of these.
const PATTERNS: [&[&str]; 12] = [
    // PyTorch, and CUDA's own words in its errors.
    &["CUDA out of memory"],
    &["CUDA error: out of memory"],
    &["torch.OutOfMemoryError"],
    &["torch.cuda.OutOfMemoryError"],
    // XLA, and with it JAX; TensorFlow also says this of host memory.
    &["RESOURCE_EXHAUSTED: Out of memory"],
    &["OOM when allocating tensor", "GPU"],
    &["cupy.cuda.memory.OutOfMemoryError"],
    // Names of errors, of the driver, the runtime, and two libraries.
    &["CUDA_ERROR_OUT_OF_MEMORY"],
    &["cudaErrorMemoryAllocation"],
    &["CUBLAS_STATUS_ALLOC_FAILED"],
    &["CUDNN_STATUS_ALLOC_FAILED"],
    &["CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"],
];

/// What was printed, as far as it matters here.
#[derive(Debug, Default)]
pub struct OutOfMemoryDetector {
    /// Bytes of both streams.
    length: u64,
    /// The last line that said it, and how much had been printed by then.
    said: Option<(u64, String)>,
    /// Lines that are not yet whole.
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl OutOfMemoryDetector {
    /// Takes in what was printed at once.
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
                self.look_at(&line);
            }
        }
    }

    /// The words by which it was said, if that was a short while ago. To be asked at the end.
    pub fn out_of_gpu_memory(mut self) -> Option<String> {
        for unfinished in [std::mem::take(&mut self.stdout), std::mem::take(&mut self.stderr)] {
            self.look_at(&unfinished);
        }
        let (by_then, words) = self.said?;
        (self.length - by_then <= MAX_DISTANCE).then_some(words)
    }

    fn look_at(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        if PATTERNS.iter().any(|sign| sign.iter().all(|words| line.contains(words))) {
            self.said = Some((self.length, line.trim().chars().take(MAX_MESSAGE).collect()));
        }
    }
}

fn ends_line(byte: &u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(pieces: &[&str]) -> Option<String> {
        let mut printed = OutOfMemoryDetector::default();
        pieces.iter().for_each(|piece| printed.append(LogStream::Stderr, piece.as_bytes()));
        printed.out_of_gpu_memory()
    }

    #[test]
    fn the_words_of_every_framework_are_known() {
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
            assert_eq!(said(&[words, "\n"]).as_deref(), Some(words));
        }
    }

    #[test]
    fn other_memory_is_not_the_gpus() {
        for words in [
            "java.lang.OutOfMemoryError: Java heap space",
            "MemoryError: Unable to allocate 8.00 GiB for an array",
            "ResourceExhaustedError: OOM when allocating tensor with shape[8] on /device:CPU:0 by allocator cpu",
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            "RESOURCE_EXHAUSTED: too many requests",
        ] {
            assert_eq!(said(&[words, "\n"]), None, "{words}");
        }
    }

    #[test]
    fn words_are_found_across_pieces_and_in_a_last_line_without_an_end() {
        let words = Some("E: CUDA out of memory.".to_owned());
        assert_eq!(said(&["step 1\rE: CUDA ou", "t of mem", "ory.\r\nbye\n"]), words);
        assert_eq!(said(&["step 1\nE: CUDA out of", " memory."]), words);
    }

    #[test]
    fn the_two_streams_do_not_mix() {
        let mut printed = OutOfMemoryDetector::default();
        printed.append(LogStream::Stdout, b"CUDA out ");
        printed.append(LogStream::Stderr, b"of memory");
        printed.append(LogStream::Stdout, b"the window\n");
        assert_eq!(printed.out_of_gpu_memory(), None);
    }

    #[test]
    fn what_was_survived_long_ago_does_not_count() {
        let later = "step 2000 loss 0.1\n".repeat(4000);
        assert_eq!(
            said(&["CUDA out of memory\n", &later[..MAX_DISTANCE as usize]]).as_deref(),
            Some("CUDA out of memory")
        );
        assert_eq!(said(&["CUDA out of memory\n", &later[..=MAX_DISTANCE as usize]]), None);
    }

    #[test]
    fn a_line_without_end_is_neither_kept_whole_nor_told_whole() {
        let mut printed = OutOfMemoryDetector::default();
        for _ in 0..1000 {
            printed.append(LogStream::Stdout, &[b'x'; 1000]);
            assert!(printed.stdout.len() < MAX_LINE + 1000);
        }
        let long = format!("CUDA out of memory {}\n", "ü".repeat(10_000));
        assert_eq!(said(&[&long]).unwrap().chars().count(), MAX_MESSAGE);
    }
}
