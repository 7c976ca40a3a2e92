//! Distorted copies of images, drawn anew for each step by a pool of threads: the work of a data loader.
//!
//! What is drawn follows from the seed, the step and the image alone, not from the number of threads.

use std::f32::consts::PI;
use std::thread;

use rand::RngExt as _;

use super::images::{PIXELS, SIDE};
use crate::random::{RandomStream, generator};

/// Images are turned by at most this angle, in radians,
const TURN: f32 = PI / 16.0;
/// scaled by a factor of at most this much from 1,
const SCALING: f32 = 0.1;
/// and moved by at most so many pixels.
const SHIFT: f32 = 0.5;
/// Apart by more than what is drawn for one image takes.
const WORDS_FOR_EACH_IMAGE: u128 = 16;

/// How images are distorted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Distortion {
    pub(super) seed: u64,
    /// Each pixel is the mean of this number of points, squared.
    pub(super) points: u16,
    pub(super) threads: u16,
}

/// Where the points of a distorted image lie in the original.
#[derive(Clone, Copy)]
struct Map {
    cosine: f32,
    sine: f32,
    shift: (f32, f32),
}

impl Distortion {
    /// The pixels of these images, distorted for a step. `numbers` has the number of each image.
    pub(super) fn apply(self, step: u64, numbers: &[u32], pixels: &[f32]) -> Vec<f32> {
        let mut distorted = vec![0.0; pixels.len()];
        let images = numbers.len().div_ceil(usize::from(self.threads.max(1))).max(1);
        thread::scope(|scope| {
            let parts = numbers.chunks(images).zip(pixels.chunks(images * PIXELS));
            for ((numbers, pixels), distorted) in parts.zip(distorted.chunks_mut(images * PIXELS)) {
                scope.spawn(move || self.draw(step, numbers, pixels, distorted));
            }
        });
        distorted
    }

    fn draw(self, step: u64, numbers: &[u32], pixels: &[f32], distorted: &mut [f32]) {
        let (originals, copies) = (pixels.chunks(PIXELS), distorted.chunks_mut(PIXELS));
        for ((number, original), copy) in numbers.iter().zip(originals).zip(copies) {
            let map = Map::random(self.seed, step, *number);
            for (place, pixel) in copy.iter_mut().enumerate() {
                *pixel = self.mean(map, original, place % SIDE, place / SIDE);
            }
        }
    }

    fn mean(self, map: Map, original: &[f32], column: usize, row: usize) -> f32 {
        let offset = |point: u16| (f32::from(point) + 0.5) / f32::from(self.points);
        let points = (0..self.points).flat_map(|down| (0..self.points).map(move |right| (right, down)));
        let values = points.map(|(right, down)| {
            let (x, y) = map.original(column as f32 + offset(right), row as f32 + offset(down));
            brightness(original, x, y)
        });
        values.sum::<f32>() / f32::from(self.points).powi(2)
    }
}

impl Map {
    fn random(seed: u64, step: u64, number: u32) -> Map {
        let mut generator = generator(seed, RandomStream::Distortion(step));
        generator.set_word_pos(u128::from(number) * WORDS_FOR_EACH_IMAGE);
        let turn: f32 = generator.random_range(-TURN..TURN);
        let scale: f32 = 1.0 + generator.random_range(-SCALING..SCALING);
        let shift = (generator.random_range(-SHIFT..SHIFT), generator.random_range(-SHIFT..SHIFT));
        Map { cosine: scale * turn.cos(), sine: scale * turn.sin(), shift }
    }

    /// The point of the original at this point of the copy.
    fn original(self, x: f32, y: f32) -> (f32, f32) {
        let middle = SIDE as f32 / 2.0;
        let (x, y) = (x - middle, y - middle);
        (
            self.cosine * x - self.sine * y + middle + self.shift.0,
            self.sine * x + self.cosine * y + middle + self.shift.1,
        )
    }
}

/// The brightness at a point, between the middles of the four pixels around it. All around is dark.
fn brightness(image: &[f32], x: f32, y: f32) -> f32 {
    let (x, y) = (x - 0.5, y - 0.5);
    let (left, top) = (x.floor(), y.floor());
    let (right_part, lower_part) = (x - left, y - top);
    let pixel = |x: f32, y: f32| {
        let side = SIDE as f32;
        let is_inside = (0.0..side).contains(&x) && (0.0..side).contains(&y);
        if is_inside { image[y as usize * SIDE + x as usize] } else { 0.0 }
    };
    let upper = pixel(left, top) * (1.0 - right_part) + pixel(left + 1.0, top) * right_part;
    let lower = pixel(left, top + 1.0) * (1.0 - right_part) + pixel(left + 1.0, top + 1.0) * right_part;
    upper * (1.0 - lower_part) + lower * lower_part
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: [u32; 5] = [4, 0, 7, 1, 9];

    fn images() -> Vec<f32> {
        (0..NUMBERS.len() * PIXELS).map(|place| (place % 17) as f32 / 16.0).collect()
    }

    fn distorted(step: u64, threads: u16) -> Vec<f32> {
        Distortion { seed: 1, points: 2, threads }.apply(step, &NUMBERS, &images())
    }

    #[test]
    fn any_number_of_threads_draws_the_same() {
        let alone = distorted(3, 1);
        assert!([2, 3, 8].into_iter().all(|threads| distorted(3, threads) == alone));
        assert_ne!(distorted(4, 1), alone);
    }

    #[test]
    fn an_image_is_distorted_in_the_same_way_in_any_batch() {
        let (second, all) = (&images()[PIXELS..2 * PIXELS], distorted(3, 1));
        let alone = Distortion { seed: 1, points: 2, threads: 1 }.apply(3, &NUMBERS[1..2], second);
        assert_eq!(alone, all[PIXELS..2 * PIXELS]);
    }

    #[test]
    fn copies_are_about_as_bright_as_their_originals() {
        let sum = |pixels: &[f32]| pixels.iter().sum::<f32>();
        let (before, after) = (sum(&images()), sum(&distorted(0, 2)));
        assert!((0.6 * before..1.1 * before).contains(&after), "{after} of {before}");
        assert!(distorted(0, 2).iter().all(|pixel| (0.0..=1.0).contains(pixel)));
    }
}
