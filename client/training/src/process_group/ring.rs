//! Ranks in a ring: each sends to the next and receives from the previous one.
//!
//! The all-reduce is that of Patarasuk and Yuan (2009, section 3). The values are divided into as many parts
//! as there are ranks. In the first round each rank adds its values to the parts that pass by; in the second
//! round the sums are copied. Each rank sends and receives about twice the values, whatever the number of
//! ranks. Because each sum is computed once and copied, all ranks get the same bits.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// A rank that sends nothing for longer is considered dead. The slowest step must be shorter.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The connections of this rank to its neighbors in the ring.
pub(crate) struct Ring {
    rank: usize,
    ranks: usize,
    next: TcpStream,
    previous: TcpStream,
}

impl Ring {
    pub(crate) fn new(rank: usize, ranks: usize, next: TcpStream, previous: TcpStream) -> Result<Self> {
        // Each step waits for small messages.
        next.set_nodelay(true)?;
        next.set_write_timeout(Some(TIMEOUT))?;
        previous.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { rank, ranks, next, previous })
    }

    /// Replaces the values with their sums over all ranks. All ranks must pass the same number of values.
    pub(crate) fn sum(&mut self, values: &mut [f32]) -> Result<()> {
        for turn in 0..self.ranks - 1 {
            let (sent, received) = (self.part(values.len(), turn), self.part(values.len(), turn + 1));
            let terms = self.exchange(&values[sent], received.len())?;
            values[received].iter_mut().zip(terms).for_each(|(value, term)| *value += term);
        }
        for turn in 0..self.ranks - 1 {
            // The part that was summed last is the first to be copied.
            let sent = self.part(values.len(), turn + self.ranks - 1);
            let received = self.part(values.len(), turn);
            let sums = self.exchange(&values[sent], received.len())?;
            values[received].copy_from_slice(&sums);
        }
        Ok(())
    }

    /// Passes on the bytes of the first rank; those of other ranks are ignored.
    pub(crate) fn broadcast(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let bytes =
            if self.rank == 0 { bytes } else { self.receive_bytes().context(self.lost_rank_message())? };
        if self.rank + 1 < self.ranks {
            let length = (bytes.len() as u64).to_le_bytes();
            let sent = self.next.write_all(&length).and_then(|()| self.next.write_all(&bytes));
            sent.context(self.lost_rank_message())?;
        }
        Ok(bytes)
    }

    fn receive_bytes(&mut self) -> Result<Vec<u8>> {
        let mut length = [0; 8];
        self.previous.read_exact(&mut length)?;
        let mut bytes = Vec::new();
        let length = u64::from_le_bytes(length);
        let read = Read::by_ref(&mut self.previous).take(length).read_to_end(&mut bytes)?;
        anyhow::ensure!(read as u64 == length, "the connection was closed");
        Ok(bytes)
    }

    /// The range of the part `back` places before that of this rank; there are as many parts as ranks.
    fn part(&self, length: usize, back: usize) -> Range<usize> {
        let part = (self.rank + 2 * self.ranks - back) % self.ranks;
        length * part / self.ranks..length * (part + 1) / self.ranks
    }

    /// Sends to the next rank while receiving from the previous one: if all ranks sent first, all could
    /// block.
    fn exchange(&mut self, sent: &[f32], count: usize) -> Result<Vec<f32>> {
        let bytes: Vec<u8> = sent.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut received = vec![0; count * size_of::<f32>()];
        let (next, previous) = (&mut self.next, &mut self.previous);
        let exchanged = thread::scope(|scope| {
            let sending = scope.spawn(move || next.write_all(&bytes));
            let result = previous.read_exact(&mut received);
            result.and(sending.join().expect("writing does not panic"))
        });
        exchanged.context(self.lost_rank_message())?;
        let (numbers, _) = received.as_chunks();
        Ok(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    fn lost_rank_message(&self) -> String {
        let before = (self.rank + self.ranks - 1) % self.ranks;
        format!("rank {before} or {} is gone", (self.rank + 1) % self.ranks)
    }
}
