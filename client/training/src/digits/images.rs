//! The images of handwritten digits, split by seed into a training and a test set.
//!
//! `data/README.md` describes the file: for each image, 64 bytes of brightness and one byte with the label.

use anyhow::Result;
use candle_core::{Device, Tensor};
use rand::seq::SliceRandom as _;

use super::distortion::Distortion;
use crate::random::{RandomStream, generator};

/// Pixels in a row of an image, and in a column.
pub(super) const SIDE: usize = 8;
pub(super) const PIXELS: usize = SIDE * SIDE;
/// The digits 0 to 9.
pub(super) const CLASSES: usize = 10;

const BYTES: &[u8] = include_bytes!("../../data/digits.bin");
const RECORD_LENGTH: usize = PIXELS + 1;
const BRIGHTEST: f32 = 16.0;
/// One image in five is in the test set.
const TEST_PART: usize = 5;

/// A set of images with their labels.
pub(super) struct Images {
    /// Brightness from 0 to 1, `[images, PIXELS]`.
    pub(super) pixels: Tensor,
    /// The labels, `[images]`, u32.
    pub(super) labels: Tensor,
}

impl Images {
    /// The training set and the test set for this seed, on this device.
    pub(super) fn split(seed: u64, device: &Device) -> Result<(Self, Self)> {
        let (records, []) = BYTES.as_chunks::<RECORD_LENGTH>() else {
            anyhow::bail!("the file of images is truncated")
        };
        let mut records: Vec<_> = records.iter().collect();
        records.shuffle(&mut generator(seed, RandomStream::Split));
        let (test, training) = records.split_at(records.len() / TEST_PART);
        Ok((Self::from_records(training, device)?, Self::from_records(test, device)?))
    }

    pub(super) fn count(&self) -> usize {
        self.labels.elem_count()
    }

    /// The images with these indices, in this order.
    pub(super) fn chosen(&self, numbers: &[u32]) -> Result<Self> {
        let numbers = Tensor::new(numbers, self.pixels.device())?;
        Ok(Self {
            pixels: self.pixels.index_select(&numbers, 0)?,
            labels: self.labels.index_select(&numbers, 0)?,
        })
    }

    /// The same images, distorted for a step. `numbers` has the number of each.
    pub(super) fn distorted(self, distortion: Distortion, step: u64, numbers: &[u32]) -> Result<Self> {
        let (shape, device) = (self.pixels.shape().clone(), self.pixels.device().clone());
        let pixels = distortion.apply(step, numbers, &self.pixels.flatten_all()?.to_vec1::<f32>()?);
        Ok(Self { pixels: Tensor::from_vec(pixels, shape, &device)?, labels: self.labels })
    }

    fn from_records(records: &[&[u8; RECORD_LENGTH]], device: &Device) -> Result<Self> {
        let pixels =
            records.iter().flat_map(|record| &record[..PIXELS]).map(|byte| f32::from(*byte) / BRIGHTEST);
        let labels = records.iter().map(|record| u32::from(record[PIXELS]));
        Ok(Self {
            pixels: Tensor::from_vec(pixels.collect(), (records.len(), PIXELS), device)?,
            labels: Tensor::from_vec(labels.collect(), records.len(), device)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sets_are_disjoint_and_contain_every_digit() {
        let (training, test) = Images::split(1, &Device::Cpu).unwrap();
        assert_eq!((training.count(), test.count()), (1438, 359));
        for images in [&training, &test] {
            let labels: Vec<u32> = images.labels.to_vec1().unwrap();
            assert!((0..CLASSES as u32).all(|digit| labels.contains(&digit)));
            assert_eq!(images.pixels.max_all().unwrap().to_scalar::<f32>().unwrap(), 1.0);
        }
    }

    #[test]
    fn another_seed_gives_another_split() {
        let labels = |seed| Images::split(seed, &Device::Cpu).unwrap().1.labels.to_vec1::<u32>().unwrap();
        assert_eq!(labels(1), labels(1));
        assert_ne!(labels(1), labels(2));
    }
}
