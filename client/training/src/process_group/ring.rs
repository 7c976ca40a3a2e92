//! Ranks in a ring: each sends to the next and hears from the one before it.
//!
//! Sums are made as by Patarasuk and Yuan (2009, section 3): the values are cut into as many parts as there
//! are ranks; while the parts go round once, each rank adds its own, and in a second round the sums are
//! copied. Each rank sends and hears twice the values, however many ranks there are; and since a sum is made
//! once and copied, all hear the same bits.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// A rank that is silent for longer is taken for dead; the slowest step must be shorter.
const TIMEOUT: Duration = Duration::from_secs(300);

/// This rank's place in the ring.
pub(crate) struct Ring {
    rank: usize,
    ranks: usize,
    next: TcpStream,
    previous: TcpStream,
}

impl Ring {
    pub(crate) fn new(rank: usize, ranks: usize, next: TcpStream, previous: TcpStream) -> Result<Self> {
        // A step waits for small messages.
        next.set_nodelay(true)?;
        next.set_write_timeout(Some(TIMEOUT))?;
        previous.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { rank, ranks, next, previous })
    }

    /// Replaces the values by their sums over all ranks; all must give as many.
    pub(crate) fn sum(&mut self, values: &mut [f32]) -> Result<()> {
        for turn in 0..self.ranks - 1 {
            let (given, taken) = (self.part(values.len(), turn), self.part(values.len(), turn + 1));
            let heard = self.exchange(&values[given], taken.len())?;
            values[taken].iter_mut().zip(heard).for_each(|(value, heard)| *value += heard);
        }
        for turn in 0..self.ranks - 1 {
            // The part that was summed last is the first to be copied.
            let given = self.part(values.len(), turn + self.ranks - 1);
            let taken = self.part(values.len(), turn);
            let heard = self.exchange(&values[given], taken.len())?;
            values[taken].copy_from_slice(&heard);
        }
        Ok(())
    }

    /// What the first rank gives; what others give is not looked at.
    pub(crate) fn broadcast(&mut self, bytes: Vec<u8>) -> Result<Vec<u8>> {
        let bytes = if self.rank == 0 { bytes } else { self.hear_bytes().context(self.lost())? };
        if self.rank + 1 < self.ranks {
            let length = (bytes.len() as u64).to_le_bytes();
            let sent = self.next.write_all(&length).and_then(|()| self.next.write_all(&bytes));
            sent.context(self.lost())?;
        }
        Ok(bytes)
    }

    fn hear_bytes(&mut self) -> Result<Vec<u8>> {
        let mut length = [0; 8];
        self.previous.read_exact(&mut length)?;
        let mut bytes = Vec::new();
        let length = u64::from_le_bytes(length);
        let read = Read::by_ref(&mut self.previous).take(length).read_to_end(&mut bytes)?;
        anyhow::ensure!(read as u64 == length, "it broke off");
        Ok(bytes)
    }

    /// The part that lies so many places before this rank's own, among as many parts as ranks.
    fn part(&self, length: usize, back: usize) -> Range<usize> {
        let part = (self.rank + 2 * self.ranks - back) % self.ranks;
        length * part / self.ranks..length * (part + 1) / self.ranks
    }

    /// Gives to the next while it hears from the one before: if all gave first, nobody might ever hear.
    fn exchange(&mut self, given: &[f32], taken: usize) -> Result<Vec<f32>> {
        let given: Vec<u8> = given.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut heard = vec![0; taken * size_of::<f32>()];
        let (next, previous) = (&mut self.next, &mut self.previous);
        let exchanged = thread::scope(|scope| {
            let sending = scope.spawn(move || next.write_all(&given));
            let received = previous.read_exact(&mut heard);
            received.and(sending.join().expect("writing does not panic"))
        });
        exchanged.context(self.lost())?;
        let (numbers, _) = heard.as_chunks();
        Ok(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }

    fn lost(&self) -> String {
        let before = (self.rank + self.ranks - 1) % self.ranks;
        format!("rank {before} or {} is gone", (self.rank + 1) % self.ranks)
    }
}
